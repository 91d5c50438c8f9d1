"""Credit, cancelling, blocking code and many runs at once."""

from __future__ import annotations

import queue

import pytest

from slipway_worker import frames


def test_credit_holds_the_stream_back(worker):
    run = worker.run("chain", input={"x": 1}, stream_mode=["values"], credit=1)
    run.next()
    with pytest.raises(queue.Empty):
        run._inbox.get(timeout=0.3)
    worker.send(frames.CREDIT, run.stream, {"chunks": 1})
    run.next()
    assert len(run.chunks) == 2
    worker.send(frames.CREDIT, run.stream, {"chunks": 64})
    assert run.done().status == "success"
    assert len(run.chunks) == 3


def test_a_run_without_credit_can_be_cancelled(worker):
    run = worker.run("chain", input={"x": 1}, stream_mode=["values"], credit=0)
    run.cancel()
    assert run.done().status == "cancelled"


@pytest.mark.parametrize("graph", ["slow_a", "slow_s"])
def test_cancel_ends_a_slow_node(worker, graph):
    run = worker.run(graph, input={"x": 1}, stream_mode=["custom"])
    assert run.until("custom") == "slow"
    run.cancel()
    done = run.done()
    assert (done.status, done.error) == ("cancelled", None)
    assert (done.snapshot["values"], done.snapshot["next"]) == ({"x": 2, "log": ["add"]}, ["s"])
    assert done.snapshot == worker.call("state.get", graph, run.thread_id)


def test_a_fenced_run_leaves_no_snapshot(worker):
    run = worker.run("slow_a", input={"x": 1}, stream_mode=["custom"])
    run.until("custom")
    run.cancel("fenced")
    done = run.done()
    assert (done.status, done.snapshot) == ("cancelled", None)


def test_cancelling_what_has_ended_is_ignored(worker):
    run = worker.run("trivial", input={"x": 1})
    run.done()
    run.cancel()
    assert worker.run("trivial", input={"x": 1}).done().status == "success"


def test_the_link_lives_while_a_node_blocks(worker):
    """A node that blocks the event loop stops neither answers to other threads nor frames that were sent before."""
    pausing = worker.run("slow_s", input={"x": 1}, stream_mode=["custom"])
    pausing.until("custom")
    blocked = worker.run("blocking", input={"x": 2}, stream_mode=["values"])
    assert blocked.until("values") == {"x": 2, "log": []}
    assert blocked.done().snapshot["values"]["note"] == "unblocked"
    pausing.cancel()
    assert pausing.done().status == "cancelled"


def test_threads_of_the_user_are_served_while_the_loop_blocks(fresh):
    fresh.load(g="./blocked.py:graph")
    assert fresh.run("g", input={}).done().snapshot["values"]["note"] == "served while blocked"


def test_many_runs_do_not_mix(worker):
    runs = [worker.run("echoing", input={"x": n}, stream_mode=["values", "updates"]) for n in range(50)]
    for n, run in enumerate(runs):
        done = run.done()
        assert done.snapshot["values"] == {"x": n, "log": [], "note": f"n{n}"}
        assert done.snapshot["checkpoint"]["thread_id"] == run.thread_id
        assert run.of("updates") == [{"n": {"note": f"n{n}"}}]
        assert all(value["x"] == n for value in run.of("values"))


def test_cancel_ends_a_factory_that_hangs(fresh):
    fresh.load(g="./factories.py:hanging", t="./graphs.py:trivial")
    run = fresh.run("g", input={})
    fresh.run("t", input={"x": 1}).done()  # by now the factory is at work
    run.cancel()
    assert run.done().status == "cancelled"
