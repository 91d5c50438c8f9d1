// A graph that shows its answer as a component. weather.py is the same one in Python.
import { AIMessage } from "@langchain/core/messages";
import { Annotation, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { typedUi, uiMessageReducer } from "@langchain/langgraph-sdk/react-ui/server";

const State = Annotation.Root({ ...MessagesAnnotation.spec, ui: Annotation({ reducer: uiMessageReducer, default: () => [] }) });

export const graph = new StateGraph(State)
  .addNode("tell", async (state, config) => {
    const message = new AIMessage({ id: "answer", content: "sunny" });
    typedUi(config).push({ name: "weather", props: { city: String(state.messages.at(-1).content) } }, { message });
    return { messages: [message] };
  })
  .addEdge(START, "tell")
  .compile();
