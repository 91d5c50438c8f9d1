"""Use the graphs of a deployment as RemoteGraphs, alone and as nodes of a local graph: python remote.py URL.

Every check is one line of output; the first that fails ends the program with exit code 1.
"""

import asyncio
import sys
import uuid
from collections.abc import Awaitable, Callable
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command


def remote(name: str) -> RemoteGraph:
    return RemoteGraph(name, url=sys.argv[1])


def human(content: str) -> dict:
    return {"messages": [{"role": "user", "content": content}]}


def thread() -> dict:
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


async def invoke_without_and_with_a_thread() -> None:
    assert (await remote("relay").ainvoke(human("hi")))["messages"][-1]["content"] == "relay: hi"
    config = thread()
    await remote("relay").ainvoke(human("one"), config)
    values = await remote("relay").ainvoke(human("two"), config)
    assert [m["content"] for m in values["messages"]] == ["one", "relay: one", "two", "relay: two"], values


async def the_sync_methods_work_too() -> None:
    def drive() -> None:
        assert remote("relay").invoke(human("hi"))["messages"][-1]["content"] == "relay: hi"
        assert list(remote("family").stream({"x": 1}, stream_mode="updates")) == [{"first": {"x": 2}}, {"child": {"x": 12}}]
        assert set(remote("family").get_graph().nodes) == {"__start__", "first", "child", "__end__"}

    await asyncio.to_thread(drive)


async def stream_in_one_mode_in_several_with_subgraphs() -> None:
    several = [
        part async for part in remote("family").astream({"x": 1}, stream_mode=["values", "custom"], subgraphs=True)
    ]
    assert any(mode == "custom" and data == {"from": "inner"} for _, mode, data in several), several
    assert several[-1] == ((), "values", {"x": 12}), several[-1]
    tokens = [part async for part in remote("agent").astream(human("6 times 7"), stream_mode="messages")]
    said = "".join(m["content"] for m, meta in tokens if meta["langgraph_node"] == "model")
    assert said == "The answer is 42.", said


async def state_history_and_updates() -> None:
    config, graph = thread(), remote("approve")
    await graph.ainvoke({}, config)
    state = await graph.aget_state(config)
    assert state.next == ("ask",), state
    assert state.tasks[0].interrupts[0].value == {"question": "ok?"}, state
    await graph.aupdate_state(config, {"x": 5})
    assert (await graph.aget_state(config)).values["x"] == 5
    history = [s async for s in graph.aget_state_history(config)]
    assert len(history) == 4, history
    assert (await graph.aget_state(history[1].config)).values == history[1].values


async def an_interrupt_is_resumed_by_a_command() -> None:
    config, graph = thread(), remote("approve")
    assert [i["value"] for i in (await graph.ainvoke({}, config))["__interrupt__"]] == [{"question": "ok?"}]
    assert await graph.ainvoke(Command(resume="yes"), config) == {"x": 1, "note": "yes"}


async def a_failure_is_an_exception() -> None:
    try:
        await remote("fails").ainvoke({"x": 1})
    except RemoteException as error:
        assert "boom" in str(error), error
        return
    raise AssertionError("no exception")


async def a_drawing_flat_and_with_what_is_inside() -> None:
    flat = await remote("family").aget_graph()
    assert set(flat.nodes) == {"__start__", "first", "child", "__end__"}, flat.nodes
    deep = await remote("family").aget_graph(xray=True)
    assert "first" in deep.draw_mermaid()


async def nodes_of_a_local_graph() -> None:
    local = StateGraph(MessagesState)
    local.add_node("far", remote("relay"))
    local.add_edge(START, "far")
    local.add_edge("far", END)
    values = await local.compile().ainvoke(human("there"))
    assert values["messages"][-1].content == "relay: there", values


class Shared(TypedDict, total=False):
    x: int
    note: str


async def an_interrupt_in_a_remote_node_stops_the_local_graph() -> None:
    local = StateGraph(Shared)
    local.add_node("far", remote("approve"))
    local.add_edge(START, "far")
    local.add_edge("far", END)
    graph, config = local.compile(checkpointer=InMemorySaver()), thread()
    first = await graph.ainvoke({}, config)
    assert [i.value for i in first["__interrupt__"]] == [{"question": "ok?"}], first


CHECKS: list[Callable[[], Awaitable[None]]] = [
    invoke_without_and_with_a_thread,
    the_sync_methods_work_too,
    stream_in_one_mode_in_several_with_subgraphs,
    state_history_and_updates,
    an_interrupt_is_resumed_by_a_command,
    a_failure_is_an_exception,
    a_drawing_flat_and_with_what_is_inside,
    nodes_of_a_local_graph,
    an_interrupt_in_a_remote_node_stops_the_local_graph,
]


async def main() -> None:
    for check in CHECKS:
        await check()
        print("ok", check.__name__)


asyncio.run(main())
