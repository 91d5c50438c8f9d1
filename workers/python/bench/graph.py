"""The graph of the benchmark: one node that adds one."""

from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    x: int


async def add(state: State):
    return {"x": state["x"] + 1}


graph = StateGraph(State).add_node("n", add).add_edge(START, "n").compile()
