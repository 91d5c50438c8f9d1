from my_agent.tools import NAME
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    text: str
    answer: str


def reply(state: State) -> State:
    return {"answer": NAME + " " + state["text"]}


graph = StateGraph(State).add_node("reply", reply).add_edge(START, "reply").add_edge("reply", END).compile()
