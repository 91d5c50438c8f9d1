from typing import TypedDict

from langgraph.graph import END, START, StateGraph


NAME = "uv"


class State(TypedDict, total=False):
    text: str
    answer: str


def reply(state: State) -> State:
    return {"answer": NAME + " " + state["text"]}


graph = StateGraph(State).add_node("reply", reply).add_edge(START, "reply").add_edge("reply", END).compile()
