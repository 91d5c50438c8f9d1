"""A graph that shows its answer as a component. weather.mjs is the same one in JavaScript."""

from collections.abc import Sequence
from typing import Annotated

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.ui import AnyUIMessage, push_ui_message, ui_message_reducer


class State(MessagesState):
    ui: Annotated[Sequence[AnyUIMessage], ui_message_reducer]


async def tell(state: State) -> dict:
    """Answer with a message and the component that shows it."""
    message = AIMessage("sunny", id="answer")
    push_ui_message("weather", {"city": state["messages"][-1].content}, message=message)
    return {"messages": [message]}


builder = StateGraph(State)
builder.add_node("tell", tell)
builder.add_edge(START, "tell")
graph = builder.compile()
