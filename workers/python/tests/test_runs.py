from __future__ import annotations

import re
import uuid

import pytest

from slipway_worker import frames

STATE_KEYS = {
    "values",
    "next",
    "tasks",
    "metadata",
    "created_at",
    "checkpoint",
    "parent_checkpoint",
    "interrupts",
}
TASK_KEYS = {"id", "name", "path", "error", "interrupts", "checkpoint", "state", "result"}


def test_a_run_and_its_snapshot(worker):
    run = worker.run("trivial", input={"x": 1})
    done = run.done()
    assert (done.status, done.error, done.envelope["retriable"]) == ("success", None, False)
    assert run.chunks == []
    assert set(done.snapshot) == STATE_KEYS
    assert done.snapshot["values"] == {"x": 2, "log": ["add"]}
    assert (done.snapshot["next"], done.snapshot["tasks"], done.snapshot["interrupts"]) == ([], [], [])
    assert done.snapshot == worker.call("state.get", "trivial", run.thread_id)


def test_the_cheap_snapshot_asks_nothing(worker):
    before = len(worker.operations)
    worker.run("trivial", input={"x": 1}).done()
    asked = [op for kind, op in worker.operations[before:] if kind == frames.ASK]
    assert asked == ["checkpoint.get"]


def test_metadata_of_a_run(worker):
    run = worker.run("trivial", input={"x": 1}, attempt=2, config={"metadata": {"mine": 1}})
    got = run.done().snapshot["metadata"]
    want = {"mine": 1, "run_attempt": 2, "langgraph_host": "self-hosted", "graph_id": "trivial", "run_id": run.run_id}
    assert {k: got.get(k) for k in want} == want
    assert got["langgraph_version"] and got["langgraph_plan"]
    assert {row["run_id"] for key, row in worker.storage.checkpoints.items() if key[0] == run.thread_id} == {run.run_id}


def test_values_and_updates(worker):
    run = worker.run("chain", input={"x": 1}, stream_mode=["values", "updates"])
    run.done()
    assert run.chunks == [
        ("values", {"x": 1, "log": []}),
        ("updates", {"a": {"x": 2, "log": ["add"]}}),
        ("values", {"x": 2, "log": ["add"]}),
        ("updates", {"b": {"x": 3, "log": ["add"]}}),
        ("values", {"x": 3, "log": ["add", "add"]}),
    ]


def test_debug_checkpoints_and_tasks(worker):
    run = worker.run("trivial", input={"x": 1}, stream_mode=["debug", "checkpoints", "tasks"])
    run.done()
    debug, checkpoints, tasks = run.of("debug"), run.of("checkpoints"), run.of("tasks")
    assert [d["type"] for d in debug] == ["checkpoint", "checkpoint", "task", "task_result", "checkpoint"]
    last = debug[-1]["payload"]
    assert set(last["checkpoint"]) == {"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"}
    assert last["checkpoint"]["thread_id"] == run.thread_id
    assert last["parent_checkpoint"]["checkpoint_id"] == debug[1]["payload"]["checkpoint"]["checkpoint_id"]
    assert debug[0]["payload"]["parent_checkpoint"] is None
    assert not [
        k for d in debug if d["type"] == "checkpoint" for k in d["payload"]["config"]["configurable"] if "__" in k
    ]
    assert checkpoints[-1]["values"] == {"x": 2, "log": ["add"]}
    assert checkpoints[-1]["next"] == []
    assert {"config", "metadata", "values", "next", "parent_config", "tasks"} <= set(checkpoints[-1])
    start, end = tasks
    assert (start["name"], start["input"], start["triggers"]) == ("n", {"x": 1, "log": []}, ["branch:to:n"])
    assert (end["id"], end["result"], end["interrupts"]) == (start["id"], {"x": 2, "log": ["add"]}, [])
    assert "error" not in end


def test_events(worker):
    run = worker.run("trivial", input={"x": 1}, stream_mode=["events", "values"])
    assert run.done().snapshot["values"]["x"] == 2
    events = run.of("events")
    assert [(e["event"], e["name"]) for e in events if e["name"] == "LangGraph"] == [
        ("on_chain_start", "LangGraph"),
        ("on_chain_end", "LangGraph"),
    ]
    assert ("on_chain_start", "n") in [(e["event"], e["name"]) for e in events]
    assert events[0]["run_id"] == run.run_id
    assert run.of("values") == [{"x": 1, "log": []}, {"x": 2, "log": ["add"]}]


def test_messages(worker):
    human = {"role": "user", "content": "hi", "id": "h1"}
    run = worker.run("chat", input={"messages": [human]}, stream_mode=["messages"])
    run.done()
    kinds = [event for event, _ in run.chunks]
    assert kinds[:3] == ["messages/complete", "messages/metadata", "messages/partial"]
    assert kinds[-1] == "messages/complete"
    assert set(kinds[2:-1]) == {"messages/partial"}
    assert [m["id"] for m in run.chunks[0][1]] == ["h1"]
    (number,) = run.chunks[1][1]
    assert run.chunks[1][1][number]["metadata"]["langgraph_node"] == "n"
    grown = [data[0]["content"] for data in run.of("messages/partial")]
    assert grown == sorted(grown, key=len) and grown[-1] == "tok0 tok1 tok2"
    (final,) = run.chunks[-1][1]
    assert (final["id"], final["type"], final["content"]) == (number, "ai", "tok0 tok1 tok2")


def test_messages_tuple(worker):
    run = worker.run("chat", input={"messages": "hi"}, stream_mode=["messages-tuple"])
    run.done()
    assert {event for event, _ in run.chunks} == {"messages"}
    assert "".join(chunk["content"] for chunk, _ in run.of("messages")) == "tok0 tok1 tok2"
    _, metadata = run.of("messages")[0]
    assert {"langgraph_node", "langgraph_step", "langgraph_checkpoint_ns", "run_id", "thread_id"} <= set(metadata)


@pytest.mark.parametrize("mode", ["messages", "messages-tuple"])
def test_hidden_models_are_not_streamed(worker, mode):
    run = worker.run("quiet_chat", input={"messages": "hi"}, stream_mode=[mode])
    run.done()
    text = str(run.chunks)
    assert "secret" not in text and "hidden words" not in text
    assert "SECRET WORDS" in text


def test_tools(worker):
    run = worker.run("tooled", input={}, stream_mode=["tools"])
    assert run.done().snapshot["values"]["note"] == "HEY"
    start, end = run.of("tools")
    assert start == {"event": "on_tool_start", "toolCallId": "t1", "name": "shout", "input": {"text": "hey"}}
    assert (end["event"], end["toolCallId"], end["name"], end["output"]["content"]) == (
        "on_tool_end",
        "t1",
        "shout",
        "HEY",
    )


def test_subgraphs_name_their_frames(worker):
    run = worker.run("parent", input={"x": 1}, stream_mode=["values", "updates", "custom", "lifecycle"], subgraphs=True)
    run.done()
    names = [event for event, _ in run.chunks]
    (ns,) = {name.partition("|")[2] for name in names} - {""}
    assert re.fullmatch(r"sub:[0-9a-f-]{36}", ns)
    assert [(e, d) for e, d in run.chunks if e.startswith("custom")] == [(f"custom|{ns}", {"from": "inner"})]
    assert (f"updates|{ns}", {"inner": {"x": 12}}) in run.chunks
    assert [d["event"] for d in run.of(f"lifecycle|{ns}")] == ["started", "completed"]
    assert run.of(f"lifecycle|{ns}")[0]["namespace"] == [ns]


def test_without_subgraphs_only_the_root_is_streamed(worker):
    run = worker.run("parent", input={"x": 1}, stream_mode=["updates", "lifecycle"])
    run.done()
    assert {event.partition("|")[0] for event, _ in run.chunks if "|" in event} == {"lifecycle"}
    assert len(run.of("updates")) == 2


def test_interrupt_and_resume(worker):
    run = worker.run("hitl", input={"x": 1}, stream_mode=["values", "updates"])
    done = run.done()
    assert done.status == "success"
    (task,) = done.snapshot["tasks"]
    assert set(done.snapshot) == STATE_KEYS and set(task) == TASK_KEYS
    (waiting,) = done.snapshot["interrupts"]
    assert waiting == {"id": waiting["id"], "value": {"q": "ok?"}} and task["interrupts"] == [waiting]
    assert (done.snapshot["next"], task["path"]) == (["ask"], ["__pregel_pull", "ask"])
    assert done.snapshot["values"] == {"x": 2, "log": ["add"]}
    assert run.chunks[-2] == ("updates", {"__interrupt__": [waiting]})
    assert run.chunks[-1][1]["__interrupt__"] == [waiting]
    resumed = worker.run("hitl", thread_id=run.thread_id, command={"resume": "yes"}).done()
    assert resumed.snapshot["values"] == {"x": 2, "log": ["add"], "note": "yes"}
    assert resumed.snapshot["interrupts"] == []


def test_several_interrupts_are_answered_by_id(worker):
    run = worker.run("two", input={})
    found = {i["value"]: i["id"] for i in run.done().snapshot["interrupts"]}
    assert set(found) == {"p", "q"}
    again = worker.run("two", thread_id=run.thread_id, command={"resume": {found["p"]: 1}}).done()
    assert [i["value"] for i in again.snapshot["interrupts"]] == ["q"]
    last = worker.run("two", thread_id=run.thread_id, command={"resume": {found["q"]: 2}}).done()
    assert last.snapshot["values"]["log"] == ["p=1", "q=2"]


def test_strict_resume_refuses_what_does_not_wait(worker):
    run = worker.run("hitl", input={"x": 1})
    run.done()
    wrong = {"resume": {uuid.uuid4().hex: 1}}
    refused = worker.run("hitl", thread_id=run.thread_id, command=wrong, strict_resume=True).done()
    assert (refused.status, refused.error["error"]) == ("error", "UnknownInterruptError")
    state = worker.call("state.get", "hitl", run.thread_id)
    assert state["next"] == ["ask"]


def test_an_interrupt_in_a_subgraph_reaches_the_root(worker):
    run = worker.run("parent_asks", input={"x": 1})
    done = run.done()
    assert [i["value"] for i in done.snapshot["interrupts"]] == [{"q": "ok?"}]
    (task,) = done.snapshot["tasks"]
    assert task["checkpoint"]["checkpoint_ns"] == f"sub:{task['id']}" and task["state"] is None
    deep = worker.call("state.get", "parent_asks", run.thread_id, subgraphs=True)
    assert deep["tasks"][0]["state"]["next"] == ["ask"]
    resumed = worker.run("parent_asks", thread_id=run.thread_id, command={"resume": "sure"}).done()
    assert resumed.snapshot["values"]["note"] == "sure"


@pytest.mark.parametrize(
    ("graph", "members", "after"),
    [
        ("chain", {"interrupt_before": ["b"]}, 2),
        ("chain", {"interrupt_after": ["a"]}, 2),
        ("chain", {"interrupt_before": "*"}, 1),
        ("breaking", {}, 2),
    ],
)
def test_breakpoints(worker, graph, members, after):
    run = worker.run(graph, input={"x": 1}, **members)
    done = run.done()
    assert (done.status, done.snapshot["values"]["x"], done.snapshot["interrupts"]) == ("success", after, [])
    assert done.snapshot["next"] == (["a"] if after == 1 else ["b"])
    assert worker.run(graph, thread_id=run.thread_id).done().snapshot["values"]["x"] == 3


def test_commands(worker):
    run = worker.run("router", input={"x": 5})
    run.done()
    goto = {"goto": [{"node": "w", "input": {"x": 9}}], "update": [["note", "n"]]}
    done = worker.run("router", thread_id=run.thread_id, command=goto).done()
    assert done.snapshot["values"] == {"x": 6, "note": "n", "log": ["add", 9]}
    done = worker.run("router", thread_id=run.thread_id, command={"goto": "w", "update": {"x": 1}}).done()
    assert done.snapshot["values"]["log"] == ["add", 9, 1]


def test_sends(worker):
    assert worker.run("fanning", input={}).done().snapshot["values"]["log"] == [0, 1, 2]


def test_functional_graphs(worker):
    done = worker.run("functional", input=21).done()
    assert (done.status, done.snapshot["values"]) == ("success", 42)


def test_context(worker):
    assert worker.run("greeting", input={}, context={"name": "ada"}).done().snapshot["values"]["note"] == "ada"
    assert worker.run("greeting", input={}, context={}).done().snapshot["values"]["note"] == "nobody"


def test_store_of_async_and_sync_nodes(worker):
    done = worker.run("memory", input={"x": 3}).done()
    assert done.snapshot["values"]["note"] == "3 [('a', 'b')] None"
    done = worker.run("sync_store", input={"x": 4}).done()
    assert done.snapshot["values"]["note"] == "4"


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_durability(worker, durability):
    before = len(worker.operations)
    run = worker.run("chain", input={"x": 1}, durability=durability)
    done = run.done()
    puts = [kind for kind, op in worker.operations[before:] if op == "checkpoint.put"]
    assert set(puts) == {frames.ASK if durability == "sync" else frames.TELL}
    assert len(puts) == (1 if durability == "exit" else 4)
    assert done.snapshot == worker.call("state.get", "chain", run.thread_id)


def test_a_temporary_run_stores_nothing(worker):
    before = len(worker.operations)
    done = worker.run("trivial", input={"x": 1}, temporary=True, durability="async").done()
    assert done.snapshot == {"values": {"x": 2, "log": ["add"]}, "interrupts": []}
    assert worker.operations[before:] == []


def test_recursion_limit_only_if_given(worker):
    done = worker.run("endless", input={"x": 0}, config={"recursion_limit": 5}).done()
    assert (done.status, done.error["error"], done.snapshot["values"]["x"]) == ("error", "GraphRecursionError", 5)
    assert worker.run("trivial", input={"x": 0}, config={"recursion_limit": None}).done().status == "success"


def test_a_failing_node(worker):
    run = worker.run("failing", input={"x": 1}, stream_mode=["tasks"])
    done = run.done()
    assert (done.status, done.error) == ("error", {"error": "RuntimeError", "message": "boom"})
    assert done.envelope["retriable"] is False
    assert (done.snapshot["values"]["x"], done.snapshot["next"]) == (2, ["f"])
    assert "boom" in done.snapshot["tasks"][0]["error"]


def test_system_exit_of_a_node_fails_only_its_run(worker):
    assert worker.run("exiting", input={}).done().status == "error"
    assert worker.run("trivial", input={"x": 1}).done().status == "success"


def test_an_exception_without_words_ends_its_run(worker):
    done = worker.run("speechless", input={"x": 1}).done()
    assert (done.status, done.error) == ("error", {"error": "Speechless", "message": "<Speechless>"})


def test_a_message_of_a_megabyte_is_cut(worker):
    message = worker.run("verbose", input={"x": 1}).done().error["message"]
    assert len(message) < 70_000 and message.endswith("... (1048576 characters)")


def test_values_that_cannot_be_written_are_named(worker):
    run = worker.run("mumbling", input={"x": 1}, stream_mode=["custom"])
    assert run.done().status == "success"
    chunks = [chunk["chunk"] for _, chunk in run.chunks]
    assert chunks[0] == "<Speechless>"
    assert chunks[2:] == [["[Circular]", "[Circular]"], hex(1 << 50_000), "?"]


def test_a_factory_that_raises_a_base_exception(worker):
    assert worker.run("abrupt", input={"x": 1}).done().error == {"error": "Abrupt", "message": "at once"}
    told = worker.call("state.get", "abrupt", str(uuid.uuid4()))
    assert told["error"] == {"error": "Abrupt", "message": "at once", "code": "internal"}


def test_an_unknown_graph(worker):
    done = worker.run("nowhere", input={}).done()
    assert (done.status, done.error["message"]) == ("error", 'no graph "nowhere" is loaded')


def test_odd_values(worker):
    run = worker.run("oddities", input={}, stream_mode=["values"], temporary=True)
    assert run.done().status == "success"
    got = run.chunks[-1][1]
    assert got["note"] is None
    assert (got["log"][0], got["log"][1]["content"], got["log"][2]) == ([1, 2], "hi", 1 << 80)


def test_a_retry_goes_on_from_the_last_checkpoint(worker):
    run = worker.run("chain", input={"x": 1}, interrupt_before=["b"])
    run.done()
    again = worker.run("chain", thread_id=run.thread_id, run_id=run.run_id, attempt=2, resume=True, input={"x": 100})
    assert again.done().snapshot["values"] == {"x": 3, "log": ["add", "add"]}


def test_fork_from_an_older_checkpoint(worker):
    run = worker.run("chain", input={"x": 1})
    run.done()
    history = worker.call("state.history", "chain", run.thread_id, limit=10, before=None, filter=None)
    older = next(s for s in history if s["next"] == ["b"])
    config = {"configurable": {"checkpoint_id": older["checkpoint"]["checkpoint_id"]}}
    forked = worker.run("chain", thread_id=run.thread_id, config=config).done()
    assert forked.snapshot["values"] == {"x": 3, "log": ["add", "add"]}


def test_refused_storage_is_retriable(fresh):
    fresh.load(chain="./graphs.py:chain")
    fresh.refuse["checkpoint.get"] = "internal"
    done = fresh.run("chain", input={"x": 1}).done()
    assert (done.status, done.envelope["retriable"], done.snapshot) == ("error", True, None)
    fresh.refuse = {"checkpoint.put": "stale"}
    done = fresh.run("chain", input={"x": 1}, durability="sync").done()
    assert (done.status, done.envelope["retriable"], done.snapshot) == ("error", True, None)


def test_credentials_reach_no_stream(worker):
    secrets = {"langgraph_auth_user": {"identity": "ada"}, "langgraph_auth_user_id": "s3cret"}
    modes = ["values", "updates", "debug", "tasks", "checkpoints", "events", "messages", "messages-tuple"]
    config = {"configurable": secrets, "metadata": {}}
    run = worker.run("chat", input={"messages": "hi"}, config=config, stream_mode=modes)
    done = run.done()
    assert done.status == "success" and run.chunks
    assert "s3cret" not in str(run.chunks) and "s3cret" not in str(done.snapshot)


def test_events_of_subgraphs(worker):
    run = worker.run("parent", input={"x": 1}, stream_mode=["events", "custom"], subgraphs=True)
    assert run.done().status == "success"
    assert [data for event, data in run.chunks if event.startswith("custom|sub:")] == [{"from": "inner"}]
