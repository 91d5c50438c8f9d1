const { Annotation, END, START, StateGraph } = require("@langchain/langgraph");

const name = "commonjs";

const State = Annotation.Root({ text: Annotation(), answer: Annotation() });

exports.graph = new StateGraph(State)
  .addNode("reply", ({ text }) => ({ answer: `${name} ${text}` }))
  .addEdge(START, "reply")
  .addEdge("reply", END)
  .compile();
