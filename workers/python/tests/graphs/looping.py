"""Graphs that talk to their own server, and cached, retried and counted nodes."""

import asyncio
import datetime
import threading
import time

from graphs import State, one
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import CachePolicy, RetryPolicy
from langgraph_sdk import get_client
from langgraph_sdk.cache import cache_get, cache_set, swr

early = get_client()


async def call_server(state: State):
    late = get_client()
    thread = await late.threads.get("t1")
    parts = [part async for part in early.runs.stream("t1", "agent", input={}, stream_mode="values")]
    return {"note": f"{thread['thread_id']} {[part.event for part in parts]}"}


loopback = one(call_server)


async def wait_for_server(state: State):
    await early.runs.wait("t1", "agent", input={})


waiting = one(wait_for_server)


def call_in_thread(state: State):
    async def call():
        return await get_client().threads.get("t2")

    return {"note": asyncio.run(call())["thread_id"]}


threaded = one(call_in_thread)


async def use_values(state: State):
    before = await cache_get("k")
    await cache_set("k", {"a": 1}, ttl=datetime.timedelta(days=3))
    loads = []

    async def load():
        loads.append(1)
        return len(loads)

    first = await swr("s", load, fresh_for=datetime.timedelta(hours=1))
    second = await swr("s", load, fresh_for=datetime.timedelta(hours=1))
    third = await swr("s", load)
    while len(loads) < 2:
        await asyncio.sleep(0)
    own = await third.mutate(9)
    fourth = await swr("s", load, fresh_for=datetime.timedelta(hours=1))
    seen = [(r.value, r.status) for r in (first, second, fourth)]
    return {"note": f"{before} {await cache_get('k')} {seen} {own}"}


values = one(use_values)
count = {"cached": 0, "retried": 0, "tools": 0}


def costly(state: State):
    count["cached"] += 1
    return {"log": [count["cached"]]}


cached = (
    StateGraph(State)
    .add_node("n", costly, cache_policy=CachePolicy(key_func=lambda state: str(state["x"])))
    .add_edge(START, "n")
    .compile()
)


def flaky(state: State):
    count["retried"] += 1
    if count["retried"] < 3:
        raise ConnectionError("try again")
    return {"x": count["retried"]}


retried = (
    StateGraph(State)
    .add_node("n", flaky, retry_policy=RetryPolicy(initial_interval=0.01, max_attempts=3))
    .add_edge(START, "n")
    .compile()
)


@tool
def work(text: str) -> str:
    """Work."""
    count["tools"] += 1
    time.sleep(0.01)
    return text


def busy(state: State):
    print("busy", flush=True)
    while True:
        work.invoke({"text": "x"})


async def slow_tool_body(text: str) -> str:
    """Wait."""
    try:
        print("tool called", flush=True)
        await asyncio.sleep(600)
    finally:
        print("tool cancelled", flush=True)


async def call_slow_tool(state: State):
    await tool(slow_tool_body).ainvoke({"text": "x"})


in_thread = one(busy)
in_tool = one(call_slow_tool)


def answers(state: MessagesState):
    call = {"id": "c1", "name": "work", "args": {}}
    return {"messages": [AIMessage("", id="a1", tool_calls=[call]), ToolMessage("done", tool_call_id="c1", id="t1")]}


tool_messages = one(answers, MessagesState)


def hold(state: State):
    meeting.wait(20)
    return {"note": "met"}


meeting = threading.Barrier(10)
holding = one(hold)
