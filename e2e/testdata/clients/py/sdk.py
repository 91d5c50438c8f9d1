"""Drive a deployment with the stock Python SDK: python sdk.py URL.

Every check is one line of output; the first that fails ends the program with exit code 1.
"""

import asyncio
import sys
import traceback
import uuid
from collections.abc import Awaitable, Callable

import httpx
from langgraph_sdk import get_client, get_sync_client

client = get_client(url=sys.argv[1])


def human(content: str) -> dict:
    return {"messages": [{"role": "user", "content": content}]}


async def refused(awaitable: Awaitable, status: int) -> None:
    try:
        await awaitable
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == status, error
        return
    raise AssertionError(f"not refused with {status}")


async def system_assistants_are_there() -> None:
    found = await client.assistants.search(limit=100)
    names = sorted(a["graph_id"] for a in found)
    assert names == ["agent", "approve", "count", "fails", "family", "relay", "steps"], names
    await refused(client.assistants.get(str(uuid.UUID(int=0))), 404)


async def the_check_value_of_graph_ids_holds() -> None:
    found = await client.assistants.search(graph_id="agent")
    assert found[0]["assistant_id"] == "fe096781-5601-53d2-b2f6-0d3403f7e9ca", found


async def threads_live_and_die() -> None:
    thread = await client.threads.create(metadata={"purpose": "sdk-py"})
    assert thread["status"] == "idle"
    found = await client.threads.search(metadata={"purpose": "sdk-py"})
    assert [t["thread_id"] for t in found] == [thread["thread_id"]]
    await refused(client.threads.create(thread_id=thread["thread_id"], if_exists="raise"), 409)
    await client.threads.delete(thread["thread_id"])
    await refused(client.threads.get(thread["thread_id"]), 404)


async def a_tool_calling_loop_runs() -> None:
    thread = await client.threads.create()
    values = await client.runs.wait(thread["thread_id"], "agent", input=human("6 times 7"))
    assert [m["type"] for m in values["messages"]] == ["human", "ai", "tool", "ai"], values
    assert values["messages"][-1]["content"] == "The answer is 42."
    history = await client.threads.get_history(thread["thread_id"], limit=10)
    assert len(history) == 5, len(history)
    earlier = await client.threads.get_state(thread["thread_id"], checkpoint=history[2]["checkpoint"])
    assert earlier["values"] == history[2]["values"]


async def streams_bring_their_modes() -> None:
    thread = await client.threads.create()
    modes = ["values", "updates", "messages", "messages-tuple", "debug", "tasks", "checkpoints", "events", "custom"]
    parts = [p async for p in client.runs.stream(thread["thread_id"], "agent", input=human("2 times 3"), stream_mode=modes)]
    events = {p.event for p in parts}
    for event in ["metadata", "values", "updates", "messages/complete", "messages", "debug", "tasks", "checkpoints", "events"]:
        assert event in events, (event, events)
    assert parts[0].event == "metadata" and parts[-1].event == "end", (parts[0], parts[-1])


async def subgraphs_are_streamed() -> None:
    parts = [
        p async for p in client.runs.stream(None, "family", input={"x": 1}, stream_mode=["custom"], stream_subgraphs=True)
    ]
    assert any(p.event.startswith("custom|child:") and p.data == {"from": "inner"} for p in parts), parts


async def a_long_stream_is_complete() -> None:
    parts = [p async for p in client.runs.stream(None, "count", input={"to": 2000}, stream_mode="custom")]
    assert [p.data["n"] for p in parts if p.event == "custom"] == list(range(1, 2001))


async def an_interrupt_waits() -> None:
    thread = await client.threads.create()
    stopped = await client.runs.wait(thread["thread_id"], "approve", input={})
    assert [i["value"] for i in stopped["__interrupt__"]] == [{"question": "ok?"}], stopped
    assert (await client.threads.get(thread["thread_id"]))["status"] == "interrupted"
    state = await client.threads.get_state(thread["thread_id"])
    assert state["next"] == ["ask"], state
    done = await client.runs.wait(thread["thread_id"], "approve", command={"resume": "yes"})
    assert done == {"x": 1, "note": "yes"}, done


async def state_is_updated_from_outside() -> None:
    thread = await client.threads.create()
    await client.runs.wait(thread["thread_id"], "approve", input={})
    await client.threads.update_state(thread["thread_id"], {"note": "by hand"}, as_node="ask")
    state = await client.threads.get_state(thread["thread_id"])
    assert state["values"]["note"] == "by hand" and state["next"] == [], state


async def a_failing_graph_is_told() -> None:
    thread = await client.threads.create()
    parts = [p async for p in client.runs.stream(thread["thread_id"], "fails", input={"x": 1})]
    assert any(p.event == "error" and p.data["message"] == "boom" for p in parts), parts
    assert (await client.threads.get(thread["thread_id"]))["status"] == "error"


async def multitask_strategies() -> None:
    thread = (await client.threads.create())["thread_id"]

    async def slow(text: str, wait_ms: int, strategy: str | None = None) -> dict:
        return await client.runs.create(thread, "relay", input={**human(text), "wait_ms": wait_ms}, multitask_strategy=strategy)

    first = await slow("one", 600)
    await refused(slow("two", 0, "reject"), 409)
    second = await slow("three", 0, "enqueue")
    await client.runs.join(thread, first["run_id"])
    await client.runs.join(thread, second["run_id"])
    third = await slow("four", 60_000)
    fourth = await slow("five", 0, "interrupt")
    await client.runs.join(thread, fourth["run_id"])
    assert (await client.runs.get(thread, third["run_id"]))["status"] == "interrupted"
    fifth = await slow("six", 60_000)
    sixth = await slow("seven", 0, "rollback")
    values = await client.runs.join(thread, sixth["run_id"])
    await refused(client.runs.get(thread, fifth["run_id"]), 404)
    said = [m["content"] for m in values["messages"]]
    answers = [t for t in said if t.startswith("relay")]
    assert answers == ["relay: one", "relay: three", "relay: five", "relay: seven"], said
    assert "six" not in said, said


async def cancel_waits() -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "relay", input={**human("x"), "wait_ms": 60_000})
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"


async def a_resumable_stream_has_no_gap() -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(
        thread, "count", input={"to": 60, "pause_ms": 10}, stream_mode="custom", stream_resumable=True
    )
    seen: list[int] = []
    last = "-1"
    async for part in client.runs.join_stream(thread, run["run_id"], last_event_id=last):
        if part.event == "custom":
            seen.append(part.data["n"])
        last = part.id or last
        if len(seen) == 20:
            break
    async for part in client.runs.join_stream(thread, run["run_id"], last_event_id=last):
        if part.event == "custom":
            seen.append(part.data["n"])
    assert seen == list(range(1, 61)), seen


async def a_thread_is_followed() -> None:
    thread = (await client.threads.create())["thread_id"]
    for pause in (5, 0):
        await client.runs.create(
            thread, "count", input={"to": 30, "pause_ms": pause}, stream_mode="custom", stream_resumable=True
        )
    seen: list[int] = []
    done, last = 0, "-"

    async def follow(stop_after: int | None) -> None:
        nonlocal done, last
        async for part in await client.threads.join_stream(thread, last_event_id=last):
            last = part.id
            if part.event == "custom":
                seen.append(part.data["n"])
            done += part.event == "metadata" and part.data.get("status") == "run_done"
            if done == 2 or len(seen) == stop_after:
                return

    await follow(20)
    await follow(None)
    assert seen == list(range(1, 31)) * 2, seen
    await client.threads.update_state(thread, {"counted": 0}, as_node="count")
    kinds: list[str] = []
    async for part in await client.threads.join_stream(thread, last_event_id="-", stream_mode=["lifecycle", "state_update"]):
        kinds.append(part.data.get("status", "start") if part.event == "metadata" else part.event)
        if part.event == "state_update":
            break
    assert kinds == ["start", "run_done", "start", "run_done", "state_update"], kinds


async def the_sync_client_works_too() -> None:
    def drive() -> None:
        sync = get_sync_client(url=sys.argv[1])
        values = sync.runs.wait(None, "relay", input=human("hi"))
        assert values["messages"][-1]["content"] == "relay: hi", values

    await asyncio.to_thread(drive)


CHECKS: list[Callable[[], Awaitable[None]]] = [
    system_assistants_are_there,
    the_check_value_of_graph_ids_holds,
    threads_live_and_die,
    a_tool_calling_loop_runs,
    streams_bring_their_modes,
    subgraphs_are_streamed,
    a_long_stream_is_complete,
    an_interrupt_waits,
    state_is_updated_from_outside,
    a_failing_graph_is_told,
    multitask_strategies,
    cancel_waits,
    a_resumable_stream_has_no_gap,
    a_thread_is_followed,
    the_sync_client_works_too,
]


async def main() -> None:
    for check in CHECKS:
        try:
            await check()
        except Exception:
            print("FAILED", check.__name__)
            traceback.print_exc()
            sys.exit(1)
        print("ok", check.__name__)


asyncio.run(main())
