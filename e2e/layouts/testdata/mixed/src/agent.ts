import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>(), answer: Annotation<string>() });

export const graph = new StateGraph(State)
  .addNode("reply", ({ text }) => ({ answer: `${process.env.WHO + " typescript"} ${text}` }))
  .addEdge(START, "reply")
  .addEdge("reply", END)
  .compile();
