"""Graphs the tests run."""

import asyncio
import operator
import time
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Command, Send, interrupt


class State(TypedDict, total=False):
    x: int
    note: str
    log: Annotated[list, operator.add]


def add(state: State):
    return {"x": state.get("x", 0) + 1, "log": ["add"]}


def one(node, state=State, **compiled):
    return StateGraph(state).add_node("n", node).add_edge(START, "n").add_edge("n", END).compile(**compiled)


trivial = one(add)
uncompiled = StateGraph(State).add_node("n", add).add_edge(START, "n")
own = one(add, checkpointer=InMemorySaver())
chain = StateGraph(State).add_node("a", add).add_node("b", add).add_edge(START, "a").add_edge("a", "b").compile()


def ask(state: State):
    return {"note": str(interrupt({"q": "ok?"}))}


hitl = StateGraph(State).add_node("a", add).add_node("ask", ask).add_edge(START, "a").add_edge("a", "ask").compile()


def ask_named(name):
    def node(state: State):
        return {"log": [f"{name}={interrupt(name)}"]}

    return node


two = (
    StateGraph(State)
    .add_node("p", ask_named("p"))
    .add_node("q", ask_named("q"))
    .add_edge(START, "p")
    .add_edge(START, "q")
    .compile()
)


def fail(state: State):
    raise RuntimeError("boom")


failing = StateGraph(State).add_node("a", add).add_node("f", fail).add_edge(START, "a").add_edge("a", "f").compile()


async def slow_async(state: State):
    get_stream_writer()("slow")
    try:
        await asyncio.sleep(600)
    finally:
        print("cancelled in the node", flush=True)


def slow_sync(state: State):
    get_stream_writer()("slow")
    time.sleep(6)


def slow(node):
    return StateGraph(State).add_node("a", add).add_node("s", node).add_edge(START, "a").add_edge("a", "s").compile()


slow_a = slow(slow_async)
slow_s = slow(slow_sync)


async def block(state: State):
    time.sleep(state.get("x", 2))
    return {"note": "unblocked"}


blocking = one(block)


def pause_sync(state: State, *, store: BaseStore):
    store.put(("pauses",), "k", {"x": state.get("x")})
    return {"note": str(store.get(("pauses",), "k").value["x"])}


sync_store = one(pause_sync)


async def remember(state: State, *, store: BaseStore):
    await store.aput(("a", "b"), "k", {"x": state["x"]}, ttl=5)
    found = await store.asearch(("a",))
    spaces = await store.alist_namespaces(prefix=("a",))
    await store.adelete(("a", "b"), "k")
    gone = await store.aget(("a", "b"), "k")
    return {"note": f"{found[0].value['x']} {spaces} {gone}"}


memory = one(remember)


def inner(state: State):
    get_stream_writer()({"from": "inner"})
    return {"x": state["x"] + 10}


sub = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile()
parent = (
    StateGraph(State)
    .add_node("first", add)
    .add_node("sub", sub)
    .add_edge(START, "first")
    .add_edge("first", "sub")
    .compile()
)
asking_sub = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
parent_asks = StateGraph(State).add_node("sub", asking_sub).add_edge(START, "sub").compile()


def model(*texts):
    return GenericFakeChatModel(messages=iter([AIMessage(t) for t in texts]))


async def llm(state: MessagesState):
    return {"messages": [await model("tok0 tok1 tok2").ainvoke(state["messages"])]}


async def quiet(state: MessagesState):
    chatty = model("secret words").with_config(tags=["nostream"])
    hidden = model("hidden words").with_config(tags=["langsmith:hidden"])
    await hidden.ainvoke("x")
    return {"messages": [AIMessage((await chatty.ainvoke("x")).content.upper(), id="loud")]}


chat = one(llm, MessagesState)
quiet_chat = one(quiet, MessagesState)


@tool
def shout(text: str) -> str:
    """Shout."""
    return text.upper()


async def use_tool(state: State):
    return {"note": await shout.ainvoke({"type": "tool_call", "id": "t1", "name": "shout", "args": {"text": "hey"}})}


async def use_tool_text(state: State):
    return {"note": (await use_tool(state))["note"].content}


tooled = one(use_tool_text)


@task
def double(x: int):
    return x * 2


@entrypoint()
def functional(x: int) -> int:
    return double(x).result()


def fan(state: State):
    return [Send("w", {"x": i}) for i in range(3)]


def work(state: State):
    return {"log": [state["x"]]}


fanning = StateGraph(State).add_node("w", work).add_conditional_edges(START, fan, ["w"]).compile()
router = StateGraph(State).add_node("start", add).add_node("w", work).add_edge(START, "start").compile()


@dataclass
class Ctx:
    name: str = "nobody"


def greet(state: State, runtime: Runtime[Ctx]):
    return {"note": runtime.context.name}


greeting = StateGraph(State, context_schema=Ctx).add_node("n", greet).add_edge(START, "n").compile()


def loop(state: State):
    return Command(goto="n", update={"x": state.get("x", 0) + 1})


endless = StateGraph(State).add_node("n", loop).add_edge(START, "n").compile()


def odd(state: State):
    return {"note": float("nan"), "log": [{1, 2}, AIMessage("hi", id="m"), 1 << 80]}


oddities = one(odd)


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class Abrupt(BaseException):
    """Passes every except Exception."""


def speechless_node(state: State):
    raise Speechless


def verbose_node(state: State):
    raise ValueError("z" * (1 << 20))


def speechless_chunks(state: State):
    twice: list[Any] = []
    twice += [twice, twice]
    for chunk in (Speechless(), {Speechless: 1}, twice, 1 << 50_000, "\ud800"):
        get_stream_writer()({"chunk": chunk})
    return {"note": "said"}


speechless, verbose, mumbling = one(speechless_node), one(verbose_node), one(speechless_chunks)


def abrupt(config: RunnableConfig):
    raise Abrupt("at once")


async def echo(state: State):
    await asyncio.sleep(0.01)
    return {"note": f"n{state['x']}"}


echoing = one(echo)


def exits(state: State):
    print("a user's line")
    raise SystemExit(3)


exiting = one(exits)
breaking = (
    StateGraph(State)
    .add_node("a", add)
    .add_node("b", add)
    .add_edge(START, "a")
    .add_edge("a", "b")
    .compile(interrupt_before=["b"])
)
