"""A chat agent with one tool and a scripted model: put a real one in its place."""

from datetime import datetime, timezone
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph


def model(state: MessagesState) -> dict:
    last = state["messages"][-1]
    if last.type == "tool":
        said = next(m.text for m in reversed(state["messages"]) if m.type == "human")
        return {"messages": [AIMessage(f"It is {last.content} (UTC). You said: {said}")]}
    return {"messages": [AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": str(uuid4())}])]}


def tools(state: MessagesState) -> dict:
    now = datetime.now(timezone.utc).isoformat()
    calls = state["messages"][-1].tool_calls
    return {"messages": [ToolMessage(now, tool_call_id=c["id"], name=c["name"]) for c in calls]}


def route(state: MessagesState) -> str:
    return "tools" if state["messages"][-1].tool_calls else END


graph = (
    StateGraph(MessagesState)
    .add_node("model", model)
    .add_node("tools", tools)
    .add_edge(START, "model")
    .add_conditional_edges("model", route, ["tools", END])
    .add_edge("tools", "model")
    .compile()
)
