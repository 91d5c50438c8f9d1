// Uses the graphs of a deployment as RemoteGraphs, alone and as nodes of a local graph: node remote.mjs URL. Every check is one
// line of output; the first that fails ends the program.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { Annotation, Command, END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";

const remote = (graphId) => new RemoteGraph({ graphId, url: process.argv[2] });
const human = (content) => ({ messages: [{ role: "user", content }] });
const thread = () => ({ configurable: { thread_id: randomUUID() } });
const collect = async (stream) => {
  const all = [];
  for await (const part of stream) all.push(part);
  return all;
};

const checks = {
  async "invoke, without and with a thread"() {
    assert.equal((await remote("relay").invoke(human("hi"))).messages.at(-1).content, "relay: hi");
    const config = thread();
    await remote("relay").invoke(human("one"), config);
    const values = await remote("relay").invoke(human("two"), config);
    assert.deepEqual(values.messages.map((m) => m.content), ["one", "relay: one", "two", "relay: two"]);
  },
  async "stream, in one mode, in several, with subgraphs"() {
    assert.deepEqual(await collect(await remote("family").stream({ x: 1 }, { streamMode: "updates" })), [{ first: { x: 2 } }, { child: { x: 12 } }]);
    const several = await collect(await remote("family").stream({ x: 1 }, { streamMode: ["values", "custom"], subgraphs: true }));
    assert.ok(several.some(([, mode, data]) => mode === "custom" && data.from === "inner"), JSON.stringify(several));
    assert.deepEqual(several.at(-1), [[], "values", { x: 12 }]);
    const tokens = await collect(await remote("agent").stream(human("6 times 7"), { streamMode: "messages" }));
    assert.equal(tokens.filter(([m, meta]) => meta.langgraph_node === "model" && m.content).map(([m]) => m.content).join(""), "The answer is 42.");
  },
  async "state, history and updates"() {
    const config = thread();
    await remote("approve").invoke({}, config).catch((error) => assert.equal(error.name, "GraphInterrupt"));
    const state = await remote("approve").getState(config);
    assert.deepEqual(state.next, ["ask"]);
    assert.deepEqual(state.tasks[0].interrupts[0].value, { question: "ok?" });
    const forked = await remote("approve").updateState(config, { x: 5 });
    assert.equal(forked.configurable.thread_id, config.configurable.thread_id);
    assert.equal((await remote("approve").getState(config)).values.x, 5);
    const history = await collect(remote("approve").getStateHistory(config));
    assert.equal(history.length, 4);
    assert.deepEqual((await remote("approve").getState(history[1].config)).values, history[1].values);
  },
  async "an interrupt is resumed by a command"() {
    const config = thread();
    await assert.rejects(collect(await remote("approve").stream({}, config)), { name: "GraphInterrupt" });
    const values = await remote("approve").invoke(new Command({ resume: "yes" }), config);
    assert.deepEqual(values, { x: 1, note: "yes" });
  },
  async "a failure is an exception"() {
    await assert.rejects(remote("fails").invoke({ x: 1 }), /boom/);
  },
  async "a drawing, flat and with what is inside"() {
    const flat = await remote("family").getGraphAsync();
    assert.deepEqual(Object.keys(flat.nodes).sort(), ["__end__", "__start__", "child", "first"]);
    const deep = await remote("family").getGraphAsync({ xray: true });
    assert.ok(deep.drawMermaid().includes("first"));
  },
  async "nodes of a local graph"() {
    const Both = Annotation.Root({ ...MessagesAnnotation.spec });
    const local = new StateGraph(Both).addNode("far", remote("relay")).addEdge(START, "far").addEdge("far", END).compile();
    assert.equal((await local.invoke(human("there"))).messages.at(-1).content, "relay: there");
  },
  async "an interrupt in a remote node stops the local graph"() {
    const Shared = Annotation.Root({ x: Annotation(), note: Annotation() });
    const local = new StateGraph(Shared)
      .addNode("far", remote("approve"))
      .addEdge(START, "far")
      .addEdge("far", END)
      .compile({ checkpointer: new MemorySaver() });
    const first = await local.invoke({}, thread());
    assert.deepEqual(first.__interrupt__.map((i) => i.value), [{ question: "ok?" }]);
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log("ok", name);
}
