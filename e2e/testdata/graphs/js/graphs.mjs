// The graphs that the scenarios deploy. graphs.py holds the same ones in Python: same names, same answers.
import { setTimeout as sleep } from "node:timers/promises";
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { Annotation, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

// relay: one node that answers "relay: <last message>" after input.wait_ms, unless it is cancelled before.
const Relay = Annotation.Root({ ...MessagesAnnotation.spec, wait_ms: Annotation() });
export const relay = new StateGraph(Relay)
  .addNode("relay", async (state, config) => {
    await sleep(state.wait_ms ?? 0, undefined, { signal: config.signal });
    const last = state.messages.at(-1);
    return { messages: [new AIMessage(`relay: ${last ? last.content : "nothing"}`)] };
  })
  .addEdge(START, "relay")
  .addEdge("relay", END);

// A model that follows a script: it asks for the multiply tool once, then tells the result, word by word.
class ScriptedModel extends BaseChatModel {
  _llmType() {
    return "scripted";
  }
  answer(messages) {
    const last = messages.at(-1);
    if (last.getType() === "tool") return new AIMessage(`The answer is ${last.content}.`);
    const [a, b] = (String(last.content).match(/\d+/g) ?? ["6", "7"]).map(Number);
    return new AIMessage({ content: "", tool_calls: [{ name: "multiply", args: { a, b }, id: "call_1", type: "tool_call" }] });
  }
  async _generate(messages) {
    const message = this.answer(messages);
    return { generations: [{ text: message.content, message }] };
  }
  async *_streamResponseChunks(messages, _options, run) {
    const message = this.answer(messages);
    if (message.tool_calls?.length) {
      const [call] = message.tool_calls;
      const chunk = new AIMessageChunk({
        content: "",
        tool_call_chunks: [{ name: call.name, args: JSON.stringify(call.args), id: call.id, index: 0, type: "tool_call_chunk" }],
      });
      yield new ChatGenerationChunk({ message: chunk, text: "" });
      return;
    }
    for (const word of message.content.split(/(?<= )/)) {
      yield new ChatGenerationChunk({ message: new AIMessageChunk({ content: word }), text: word });
      await run?.handleLLMNewToken(word);
    }
  }
}

// agent: a tool-calling loop with the scripted model.
const model = new ScriptedModel({});
export const agent = new StateGraph(MessagesAnnotation)
  .addNode("model", async (state, config) => {
    let whole;
    for await (const chunk of await model.stream(state.messages, config)) whole = whole ? whole.concat(chunk) : chunk;
    return { messages: [whole] };
  })
  .addNode("tools", (state) => ({
    messages: state.messages.at(-1).tool_calls.map(
      (call) => new ToolMessage({ content: String(call.args.a * call.args.b), tool_call_id: call.id, name: call.name }),
    ),
  }))
  .addEdge(START, "model")
  .addConditionalEdges("model", (state) => (state.messages.at(-1).tool_calls?.length ? "tools" : END), ["tools", END])
  .addEdge("tools", "model")
  .compile();

// approve: asks a person, then notes the answer.
const Approve = Annotation.Root({ x: Annotation(), note: Annotation() });
export const approve = new StateGraph(Approve)
  .addNode("prepare", () => ({ x: 1 }))
  .addNode("ask", () => ({ note: interrupt({ question: "ok?" }) }))
  .addEdge(START, "prepare")
  .addEdge("prepare", "ask")
  .addEdge("ask", END)
  .compile();

// family: a graph with a subgraph that writes to the custom stream.
const Family = Annotation.Root({ x: Annotation() });
const child = new StateGraph(Family)
  .addNode("inner", (state, config) => {
    config.writer?.({ from: "inner" });
    return { x: state.x + 10 };
  })
  .addEdge(START, "inner")
  .addEdge("inner", END)
  .compile();
export const family = new StateGraph(Family)
  .addNode("first", (state) => ({ x: state.x + 1 }))
  .addNode("child", child)
  .addEdge(START, "first")
  .addEdge("first", "child")
  .addEdge("child", END)
  .compile();

// count: a long stream of custom chunks, one every pause_ms.
const Count = Annotation.Root({ to: Annotation(), pause_ms: Annotation(), counted: Annotation() });
export const count = new StateGraph(Count)
  .addNode("count", async (state, config) => {
    for (let n = 1; n <= state.to; n++) {
      config.writer?.({ n });
      if (state.pause_ms) await sleep(state.pause_ms, undefined, { signal: config.signal });
    }
    return { counted: state.to };
  })
  .addEdge(START, "count")
  .addEdge("count", END)
  .compile();

// fails: a node that throws.
export const fails = new StateGraph(Family)
  .addNode("fail", () => {
    throw new Error("boom");
  })
  .addEdge(START, "fail")
  .addEdge("fail", END)
  .compile();

// steps: a factory; every step notes that it ran, so that a resumed run shows which steps ran again.
const Steps = Annotation.Root({
  pause_ms: Annotation(),
  ran: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
export async function makeSteps(config) {
  const step = (name) => async (state, run) => {
    await sleep(state.pause_ms ?? 0, undefined, { signal: run.signal });
    return { ran: [`${name}:${process.env.MARK ?? process.env.FIXTURE}`] };
  };
  return new StateGraph(Steps)
    .addNode("one", step("one"))
    .addNode("two", step("two"))
    .addNode("three", step("three"))
    .addEdge(START, "one")
    .addEdge("one", "two")
    .addEdge("two", "three")
    .addEdge("three", END);
}
