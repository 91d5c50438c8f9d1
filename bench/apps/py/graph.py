"""The measured graph: one node that answers a message."""

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


async def answer(state: MessagesState) -> dict:
    return {"messages": [AIMessage("hello")]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile()
