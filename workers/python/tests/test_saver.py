from __future__ import annotations

import asyncio
import os
import socket
import threading

import pytest
from fake_server import FakeServer
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from slipway_worker import frames
from slipway_worker.link import Link, LinkError
from slipway_worker.saver import Saver


def linked(lost=lambda: None) -> tuple[FakeServer, Link]:
    """A link in this process and a server at its other end."""
    mine, theirs = socket.socketpair()
    link = Link(mine, lambda received: None, lost)
    link.start()
    return FakeServer(theirs), link


@checkpointer_test(name="slipway")
async def slipway_saver():
    if fd := os.environ.get("SLIPWAY_CONFORMANCE_FD"):  # a real agent server at the other end
        link = Link(socket.socket(fileno=os.dup(int(fd))), lambda received: None, lambda: None)
        link.start()
    else:
        _, link = linked()
    yield Saver(link)


def test_conformance():
    report = asyncio.run(validate(slipway_saver))
    missed = {name: result for name, result in report.results.items() if result.passed is not True}
    assert not missed
    assert len(report.results) == len(Capability)
    assert report.passed_all()


def checkpoint_with(saver, **values):
    versions = {name: saver.get_next_version(None) for name in values}
    return {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}, versions


def config(thread="t", **more):
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


def test_writes_of_a_run_are_tells_and_reads_see_them():
    server, link = linked()
    saver = Saver(link, run=4, wait=False)
    checkpoint, versions = checkpoint_with(saver, x=1, gone={"a": [1]})
    saver.put(config(), checkpoint, {"source": "input", "step": -1}, versions)
    saver.put_writes(config(checkpoint_id=checkpoint["id"]), [("x", 2)], "task", "path")
    got = saver.get_tuple(config())
    assert got.checkpoint["channel_values"] == {"x": 1, "gone": {"a": [1]}}
    assert got.pending_writes == [("task", "x", 2)]
    assert server.operations == [
        (frames.TELL, "checkpoint.put"),
        (frames.TELL, "checkpoint.put_writes"),
        (frames.ASK, "checkpoint.get"),
    ]


def test_sync_durability_waits_for_each_write_and_fails_with_it():
    server, link = linked()
    saver = Saver(link, run=4, wait=True)
    checkpoint, versions = checkpoint_with(saver, x=1)
    saver.put(config(), checkpoint, {}, versions)
    assert server.operations == [(frames.ASK, "checkpoint.put")]
    server.refuse["checkpoint.put"] = "stale"
    with pytest.raises(LinkError) as caught:
        saver.put(config(), checkpoint, {}, versions)
    assert caught.value.code == "stale"


def test_metadata_is_without_credentials():
    server, link = linked()
    saver = Saver(link)
    checkpoint, versions = checkpoint_with(saver)
    secret = {"langgraph_auth_user_id": "u", "langgraph_request_id": "r", "__x": 1, "run_id": "r1", "kept": "yes"}
    saver.put(config(**secret), checkpoint, {"step": 1}, versions)
    (row,) = server.storage.checkpoints.values()
    assert row["metadata"] == {"step": 1, "run_id": "r1", "kept": "yes"}
    assert row["run_id"] == "r1"


def test_versions_increase_and_never_meet():
    saver = Saver(None)  # type: ignore[arg-type]
    first, other = saver.get_next_version(None), saver.get_next_version(None)
    assert first != other
    assert saver.get_next_version(first) > max(first, other)
    assert saver.get_next_version(7).startswith(f"{8:032}.")


def test_writes_come_in_task_path_order():
    _, link = linked()
    saver = Saver(link)
    checkpoint, versions = checkpoint_with(saver)
    at = saver.put(config(), checkpoint, {}, versions)
    saver.put_writes(at, [("x", "late")], "a", "~2")
    saver.put_writes(at, [("x", "early")], "b", "~1")
    assert [w[2] for w in saver.get_tuple(config()).pending_writes] == ["early", "late"]


def test_delta_history_starts_above_the_target():
    _, link = linked()
    saver = Saver(link)
    at, ids = config(), []
    for step in range(3):
        checkpoint, versions = checkpoint_with(saver, **({"d": "seed"} if step == 0 else {}))
        checkpoint["id"] = f"{step}"
        at = saver.put(at, checkpoint, {}, versions)
        saver.put_writes(at, [("d", f"w{step}"), ("other", 1)], f"task{step}")
        ids.append(at)
    got = saver.get_delta_channel_history(config=at, channels=["d", "none"])
    assert got["d"] == {"seed": "seed", "writes": [("task0", "d", "w0"), ("task1", "d", "w1")]}
    assert got["none"] == {"writes": []}
    assert saver.get_delta_channel_history(config=at, channels=[]) == {}


def test_a_thread_is_needed():
    _, link = linked()
    with pytest.raises(ValueError, match="thread_id"):
        Saver(link).get_tuple({"configurable": {}})


def test_a_link_serves_many_threads():
    _, link = linked()
    saver = Saver(link)
    failures: list[BaseException] = []

    def work(number):
        try:
            for step in range(20):
                checkpoint, versions = checkpoint_with(saver, n=(number, step))
                saver.put(config(f"t{number}"), checkpoint, {}, versions)
                got = saver.get_tuple(config(f"t{number}")).checkpoint["channel_values"]["n"]
                assert tuple(got) == (number, step)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_end_of_the_link_is_told():
    gone = threading.Event()
    server, _ = linked(gone.set)
    server.sock.shutdown(socket.SHUT_RDWR)
    assert gone.wait(10)
