from __future__ import annotations

import pytest
from fake_server import Process, said

from slipway_worker import frames

NAMES = (
    *("loopback", "waiting", "threaded", "values", "cached", "retried", "in_thread", "in_tool", "tool_messages"),
    "holding",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with open(tmp_path_factory.mktemp("looping") / "out", "w+") as out:
        process = Process(stdout=out)
        process.out = out
        loaded = process.load(**{name: f"./looping.py:{name}" for name in NAMES})
        assert all(said["ok"] for said in loaded["graphs"].values()), loaded
        yield process
        process.close()


def test_clients_without_an_address_reach_the_server(server):
    run = server.run("loopback", input={})
    first = server.asked()
    assert (first.request["method"], first.request["target"]) == ("GET", "/threads/t1")
    assert (first.request["run"], first.request["inner"]) == (run.stream, False)
    assert first.body() == b""
    first.answer(200, b'{"thread_id":"t1"}', [["content-type", "application/json"]])
    second = server.asked()
    assert second.request["target"] == "/threads/t1/runs/stream"
    assert b'"assistant_id":"agent"' in second.body()
    second.respond(200, [["content-type", "text/event-stream"]])
    second.send(b'event: values\ndata: {"x":1}\n\n')
    second.send(b"event: end\ndata: {}\n\n", end=True)
    assert run.done().snapshot["values"]["note"] == "t1 ['values', 'end']"


def test_a_call_is_cancelled_with_its_caller(server):
    run = server.run("waiting", input={})
    asked = server.asked()
    asked.body()
    run.cancel()
    assert asked.next().kind == frames.HANGUP
    assert run.done().status == "cancelled"


def test_a_call_from_a_thread_with_a_loop_of_its_own(server):
    run = server.run("threaded", input={})
    asked = server.asked()
    assert (asked.request["target"], asked.request["run"]) == ("/threads/t2", run.stream)
    asked.answer(200, b'{"thread_id":"t2"}')
    assert run.done().snapshot["values"]["note"] == "t2"


def test_the_value_cache(server):
    want = "None {'a': 1} [(1, 'miss'), (1, 'fresh'), (9, 'fresh')] 9"
    done = server.run("values", input={}).done()
    assert (done.error, done.snapshot["values"]["note"]) == (None, want)
    assert server.storage.values["k"] == ({"a": 1}, 86400)


def test_the_cache_of_nodes(server):
    assert server.run("cached", input={"x": 1}).done().snapshot["values"]["log"] == [1]
    assert server.run("cached", input={"x": 1}).done().snapshot["values"]["log"] == [1]
    assert server.run("cached", input={"x": 2}).done().snapshot["values"]["log"] == [2]
    server.refuse = {"cache.get": "internal", "cache.set": "internal"}
    assert server.run("cached", input={"x": 1}).done().snapshot["values"]["log"] == [3]
    server.refuse = {}


def test_nodes_are_retried(server):
    assert server.run("retried", input={}).done().snapshot["values"]["x"] == 3


def test_cancelling_reaches_an_asynchronous_tool(server):
    run = server.run("in_tool", input={})
    assert said(server, "tool called")
    run.cancel()
    assert run.done().status == "cancelled" and said(server, "tool cancelled")


def test_cancelling_reaches_tool_calls_of_a_thread(server):
    run = server.run("in_thread", input={})
    assert said(server, "busy")
    run.cancel()
    assert run.done().status == "cancelled"


def test_messages_that_were_not_streamed_have_no_metadata_frame(server):
    run = server.run("tool_messages", input={"messages": [{"type": "human", "content": "hi", "id": "h1"}]})
    run.done()
    again = server.run(
        "tool_messages", input={"messages": [{"type": "human", "content": "hi", "id": "h1"}]}, stream_mode=["messages"]
    )
    again.done()
    assert {event for event, _ in again.chunks} == {"messages/complete"}
    assert [m["id"] for _, data in again.chunks for m in data] == ["h1", "a1", "t1"]


def test_every_slot_has_a_thread_for_nodes_that_block(server):
    runs = [server.run("holding", input={}) for _ in range(10)]
    assert [run.done().snapshot["values"]["note"] for run in runs] == ["met"] * 10
