from __future__ import annotations

import uuid


def test_history_newest_first_with_filter_limit_and_before(worker):
    run = worker.run("chain", input={"x": 1})
    done = run.done()

    def history(**members):
        return worker.call(
            "state.history", "chain", run.thread_id, **{"limit": 10, "before": None, "filter": None, **members}
        )

    states = history()
    assert [s["next"] for s in states] == [[], ["b"], ["a"], ["__start__"]]
    assert states[0] == done.snapshot
    assert [s["checkpoint"]["checkpoint_id"] for s in states[1:]] == [
        s["parent_checkpoint"]["checkpoint_id"] for s in states[:-1]
    ]
    assert states[-1]["parent_checkpoint"] is None
    assert history(limit=1) == states[:1]
    assert history(before=states[1]["checkpoint"]["checkpoint_id"]) == states[2:]
    assert history(filter={"step": 0}) == [states[2]]


def test_get_of_one_checkpoint(worker):
    run = worker.run("chain", input={"x": 1})
    done = run.done()
    parent = done.snapshot["parent_checkpoint"]
    config = {"configurable": parent}
    got = worker.call("state.get", "chain", run.thread_id, config=config)
    assert (got["checkpoint"]["checkpoint_id"], got["next"]) == (parent["checkpoint_id"], ["b"])
    config = {"configurable": {"thread_id": run.thread_id, "checkpoint_id": str(uuid.uuid4())}}
    got = worker.call("state.get", "chain", run.thread_id, config=config)
    assert got["error"]["code"] == "not_found"


def test_an_empty_thread(worker):
    thread = str(uuid.uuid4())
    got = worker.call("state.get", "chain", thread)
    assert got == {
        "values": {},
        "next": [],
        "tasks": [],
        "metadata": {},
        "created_at": None,
        "checkpoint": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": None, "checkpoint_map": None},
        "parent_checkpoint": None,
        "interrupts": [],
    }


def test_update(worker):
    run = worker.run("chain", input={"x": 1}, interrupt_before=["b"])
    run.done()
    steps = [[{"values": {"x": 50}, "as_node": "a"}]]
    got = worker.call("state.update", "chain", run.thread_id, supersteps=steps)
    assert set(got) == {"config", "snapshot"}
    assert got["snapshot"]["values"]["x"] == 50
    assert got["snapshot"]["metadata"]["source"] == "update"
    assert got["config"]["configurable"]["checkpoint_id"] == got["snapshot"]["checkpoint"]["checkpoint_id"]
    assert worker.run("chain", thread_id=run.thread_id).done().snapshot["values"]["x"] == 51


def test_bulk_update_of_a_new_thread(worker):
    thread = str(uuid.uuid4())
    steps = [[{"values": {"x": 1}, "as_node": "__input__"}], [{"values": {"x": 5}, "as_node": "a"}]]
    got = worker.call("state.update", "chain", thread, supersteps=steps)
    assert (got["snapshot"]["values"]["x"], got["snapshot"]["next"]) == (5, ["b"])


def test_refused_updates(worker):
    run = worker.run("chain", input={"x": 1})
    run.done()
    steps = [[{"values": {"x": 1}, "as_node": "nobody"}]]
    got = worker.call("state.update", "chain", run.thread_id, supersteps=steps)
    assert (got["ok"], got["error"]["code"], got["error"]["error"]) == (False, "invalid", "InvalidUpdateError")
    assert "nobody" in got["error"]["message"]


def test_unknown_verbs_and_graphs(worker):
    assert worker.call("state.dance", "chain", "t")["error"]["code"] == "invalid"
    assert worker.call("state.get", "nowhere", "t")["error"]["code"] == "not_found"
