import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

// A scripted model: it asks for a tool first, then answers with the tool's result. Put a real one in its place.
function model({ messages }) {
  const last = messages.at(-1);
  if (last?.getType() === "tool") {
    return { messages: [new AIMessage(`It is ${last.content} (UTC). You said: ${said(messages)}`)] };
  }
  return { messages: [new AIMessage({ content: "", tool_calls: [{ name: "clock", args: {}, id: crypto.randomUUID() }] })] };
}

function said(messages) {
  return messages.filter((m) => m.getType() === "human").at(-1)?.text ?? "nothing";
}

function tools({ messages }) {
  return {
    messages: messages.at(-1).tool_calls.map(
      (call) => new ToolMessage({ tool_call_id: call.id, name: call.name, content: new Date().toISOString() }),
    ),
  };
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", model)
  .addNode("tools", tools)
  .addEdge(START, "model")
  .addConditionalEdges("model", ({ messages }) => (messages.at(-1).tool_calls?.length ? "tools" : END), ["tools", END])
  .addEdge("tools", "model")
  .compile();
