"""The graphs that the scenarios deploy. graphs.mjs holds the same ones in JavaScript: same names, same answers."""

import asyncio
import operator
import os
import re
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt


class Relay(MessagesState):
    wait_ms: int


async def answer(state: Relay) -> dict:
    """Answer "relay: <last message>" after wait_ms."""
    await asyncio.sleep(state.get("wait_ms", 0) / 1000)
    last = state["messages"][-1].content if state["messages"] else "nothing"
    return {"messages": [AIMessage(f"relay: {last}")]}


relay = StateGraph(Relay)
relay.add_node("relay", answer)
relay.add_edge(START, "relay")
relay.add_edge("relay", END)


class ScriptedModel(BaseChatModel):
    """A model that asks for the multiply tool once, then tells the result, word by word."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        last = messages[-1]
        if last.type == "tool":
            return AIMessage(f"The answer is {last.content}.")
        a, b = [int(n) for n in re.findall(r"\d+", str(last.content))][:2] or [6, 7]
        return AIMessage("", tool_calls=[{"name": "multiply", "args": {"a": a, "b": b}, "id": "call_1"}])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any):
        message = self._answer(messages)
        if message.tool_calls:
            chunk = AIMessageChunk(
                "",
                tool_call_chunks=[
                    {
                        "name": call["name"],
                        "args": str(call["args"]).replace("'", '"'),
                        "id": call["id"],
                        "index": 0,
                        "type": "tool_call_chunk",
                    }
                    for call in message.tool_calls
                ],
            )
            yield ChatGenerationChunk(message=chunk)
            return
        for word in re.split(r"(?<= )", str(message.content)):
            yield ChatGenerationChunk(message=AIMessageChunk(word))


model = ScriptedModel()


async def call_model(state: MessagesState) -> dict:
    return {"messages": [await model.ainvoke(state["messages"])]}


def call_tools(state: MessagesState) -> dict:
    return {
        "messages": [
            ToolMessage(str(call["args"]["a"] * call["args"]["b"]), tool_call_id=call["id"], name=call["name"])
            for call in state["messages"][-1].tool_calls
        ]
    }


builder = StateGraph(MessagesState)
builder.add_node("model", call_model)
builder.add_node("tools", call_tools)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", lambda s: "tools" if s["messages"][-1].tool_calls else END, ["tools", END])
builder.add_edge("tools", "model")
agent = builder.compile()


class Approve(TypedDict, total=False):
    x: int
    note: str


approving = StateGraph(Approve)
approving.add_node("prepare", lambda state: {"x": 1})
approving.add_node("ask", lambda state: {"note": interrupt({"question": "ok?"})})
approving.add_edge(START, "prepare")
approving.add_edge("prepare", "ask")
approving.add_edge("ask", END)
approve = approving.compile()


class Family(TypedDict):
    x: int


def inner(state: Family) -> dict:
    get_stream_writer()({"from": "inner"})
    return {"x": state["x"] + 10}


child = StateGraph(Family)
child.add_node("inner", inner)
child.add_edge(START, "inner")
child.add_edge("inner", END)

parent = StateGraph(Family)
parent.add_node("first", lambda state: {"x": state["x"] + 1})
parent.add_node("child", child.compile())
parent.add_edge(START, "first")
parent.add_edge("first", "child")
parent.add_edge("child", END)
family = parent.compile()


class Count(TypedDict, total=False):
    to: int
    pause_ms: int
    counted: int


async def write_numbers(state: Count) -> dict:
    """Write a long stream of custom chunks, one every pause_ms."""
    write = get_stream_writer()
    for n in range(1, state["to"] + 1):
        write({"n": n})
        if state.get("pause_ms"):
            await asyncio.sleep(state["pause_ms"] / 1000)
    return {"counted": state["to"]}


counting = StateGraph(Count)
counting.add_node("count", write_numbers)
counting.add_edge(START, "count")
counting.add_edge("count", END)
count = counting.compile()


def fail(state: Family) -> dict:
    raise ValueError("boom")


failing = StateGraph(Family)
failing.add_node("fail", fail)
failing.add_edge(START, "fail")
failing.add_edge("fail", END)
fails = failing.compile()


class Steps(TypedDict, total=False):
    pause_ms: int
    ran: Annotated[list[str], operator.add]


async def make_steps(config: RunnableConfig) -> StateGraph:
    """Make a graph whose steps note that they ran, so that a resumed run shows which ran again."""

    def step(name: str):
        async def run(state: Steps) -> dict:
            await asyncio.sleep(state.get("pause_ms", 0) / 1000)
            return {"ran": [f"{name}:{os.environ.get('MARK') or os.environ.get('FIXTURE')}"]}

        return run

    steps = StateGraph(Steps)
    for name in ("one", "two", "three"):
        steps.add_node(name, step(name))
    steps.add_edge(START, "one")
    steps.add_edge("one", "two")
    steps.add_edge("two", "three")
    steps.add_edge("three", END)
    return steps
