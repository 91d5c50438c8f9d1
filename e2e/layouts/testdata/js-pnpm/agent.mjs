import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation(), answer: Annotation() });

export const graph = new StateGraph(State)
  .addNode("reply", ({ text }) => ({ answer: `${"pnpm"} ${text}` }))
  .addEdge(START, "reply")
  .addEdge("reply", END)
  .compile();
