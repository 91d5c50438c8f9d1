// The measured graphs: one node that answers a message, and one that writes as many chunks as it is asked for.
import { AIMessage } from "@langchain/core/messages";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

export const builder = new StateGraph(MessagesAnnotation)
  .addNode("answer", async () => ({ messages: [new AIMessage("hello")] }))
  .addEdge(START, "answer")
  .addEdge("answer", END);

export const graph = builder.compile();

const Chunks = Annotation.Root({ chunks: Annotation() });

export const tokens = new StateGraph(Chunks)
  .addNode("write", async (state, config) => {
    for (let i = 0; i < state.chunks; i++) {
      config.writer?.({ i, at: Date.now() });
      if (i % 16 === 15) await new Promise((resolve) => setImmediate(resolve));
    }
    return {};
  })
  .addEdge(START, "write")
  .addEdge("write", END)
  .compile();
