import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation(), answer: Annotation() });

export const makeGraph = async (config) =>
  new StateGraph(State)
  .addNode("reply", ({ text }) => ({ answer: `${"lazy " + (config?.configurable?.who ?? "nobody")} ${text}` }))
  .addEdge(START, "reply")
  .addEdge("reply", END)
  .compile();
