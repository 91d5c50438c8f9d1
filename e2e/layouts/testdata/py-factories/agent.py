from contextlib import asynccontextmanager
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    text: str
    answer: str


def build(name: str) -> StateGraph:
    def reply(state: State) -> State:
        return {"answer": name + " " + state["text"]}

    return StateGraph(State).add_node("reply", reply).add_edge(START, "reply").add_edge("reply", END)


def make_sync(config: RunnableConfig):
    return build("sync " + config["configurable"].get("who", "nobody"))


async def make_async():
    return build("async").compile()


@asynccontextmanager
async def make_context(config):
    yield build("context").compile()
