// Drives a deployment with the stock JavaScript SDK: node sdk.mjs URL. Every check is one line of output; the first that
// fails ends the program with exit code 1.
import assert from "node:assert/strict";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: process.argv[2] });
const human = (content) => ({ messages: [{ role: "user", content }] });
const collect = async (stream) => {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
};
const texts = (parts, event) => parts.filter((p) => p.event === event).map((p) => p.data);

const checks = {
  async "system assistants are there"() {
    const found = await client.assistants.search({ limit: 100 });
    assert.deepEqual(found.map((a) => a.graph_id).sort(), ["agent", "approve", "count", "fails", "family", "relay", "steps"]);
    const relay = found.find((a) => a.graph_id === "relay");
    assert.equal((await client.assistants.get(relay.assistant_id)).name, "relay");
    await assert.rejects(client.assistants.get("00000000-0000-0000-0000-000000000000"), /404/);
  },
  async "threads are created, read, found and deleted"() {
    const thread = await client.threads.create({ metadata: { purpose: "sdk-js" } });
    assert.equal(thread.status, "idle");
    assert.equal((await client.threads.get(thread.thread_id)).thread_id, thread.thread_id);
    const again = await client.threads.create({ threadId: thread.thread_id, ifExists: "do_nothing" });
    assert.equal(again.thread_id, thread.thread_id);
    await assert.rejects(client.threads.create({ threadId: thread.thread_id }), /409/);
    const found = await client.threads.search({ metadata: { purpose: "sdk-js" } });
    assert.deepEqual(found.map((t) => t.thread_id), [thread.thread_id]);
    await client.threads.delete(thread.thread_id);
    await assert.rejects(client.threads.get(thread.thread_id), /404/);
  },
  async "a tool-calling loop runs to its end"() {
    const thread = await client.threads.create();
    const values = await client.runs.wait(thread.thread_id, "agent", { input: human("6 times 7") });
    assert.deepEqual(values.messages.map((m) => m.type), ["human", "ai", "tool", "ai"]);
    assert.equal(values.messages.at(-1).content, "The answer is 42.");
    const state = await client.threads.getState(thread.thread_id);
    assert.deepEqual(state.next, []);
    assert.equal(state.values.messages.length, 4);
    const history = await client.threads.getHistory(thread.thread_id, { limit: 10 });
    assert.equal(history.length, 5);
    assert.equal(history.at(-1).metadata.source, "input");
    const earlier = await client.threads.getState(thread.thread_id, history[2].checkpoint);
    assert.equal(earlier.checkpoint.checkpoint_id, history[2].checkpoint.checkpoint_id);
    assert.deepEqual(earlier.values, history[2].values);
  },
  async "every stream mode brings its frames"() {
    const thread = await client.threads.create();
    const parts = await collect(
      client.runs.stream(thread.thread_id, "agent", {
        input: human("2 times 3"),
        streamMode: ["values", "updates", "messages", "messages-tuple", "debug", "tasks", "checkpoints", "events", "custom"],
      }),
    );
    const events = new Set(parts.map((p) => p.event));
    for (const event of ["metadata", "values", "updates", "messages/metadata", "messages/partial", "messages/complete", "messages", "debug", "tasks", "checkpoints", "events"])
      assert.ok(events.has(event), `no ${event} frame among ${[...events]}`);
    assert.equal(parts[0].event, "metadata");
    assert.ok(parts[0].data.run_id);
    assert.equal(parts.at(-1).event, "end");
    assert.equal(texts(parts, "values").at(-1).messages.at(-1).content, "The answer is 6.");
    const words = texts(parts, "messages").map(([m]) => m.content).filter(Boolean);
    assert.ok(words.join("").includes("The answer is 6."), words.join("|"));
  },
  async "only the requested modes come"() {
    const parts = await collect(client.runs.stream(null, "family", { input: { x: 1 }, streamMode: "updates" }));
    assert.deepEqual(parts.map((p) => p.event), ["metadata", "updates", "updates", "end"]);
    assert.deepEqual(texts(parts, "updates"), [{ first: { x: 2 } }, { child: { x: 12 } }]);
  },
  async "subgraphs are streamed under their names"() {
    const parts = await collect(
      client.runs.stream(null, "family", { input: { x: 1 }, streamMode: ["values", "custom"], streamSubgraphs: true }),
    );
    const custom = parts.find((p) => p.event.startsWith("custom|child:"));
    assert.deepEqual(custom?.data, { from: "inner" });
    assert.ok(parts.some((p) => p.event.startsWith("values|child:")));
  },
  async "a long stream is complete and in order"() {
    const parts = await collect(client.runs.stream(null, "count", { input: { to: 2000 }, streamMode: "custom" }));
    assert.deepEqual(texts(parts, "custom").map((d) => d.n), Array.from({ length: 2000 }, (_, i) => i + 1));
  },
  async "an interrupt waits and is answered"() {
    const thread = await client.threads.create();
    const stopped = await client.runs.wait(thread.thread_id, "approve", { input: {} });
    assert.deepEqual(stopped.__interrupt__.map((i) => i.value), [{ question: "ok?" }]);
    const waiting = await client.threads.get(thread.thread_id);
    assert.equal(waiting.status, "interrupted");
    assert.equal(Object.values(waiting.interrupts).flat().length, 1);
    const state = await client.threads.getState(thread.thread_id);
    assert.deepEqual(state.next, ["ask"]);
    assert.deepEqual(state.tasks[0].interrupts[0].value, { question: "ok?" });
    const done = await client.runs.wait(thread.thread_id, "approve", { command: { resume: "yes" } });
    assert.deepEqual(done, { x: 1, note: "yes" });
    assert.equal((await client.threads.get(thread.thread_id)).status, "idle");
    assert.deepEqual((await client.runs.list(thread.thread_id)).map((r) => r.status), ["success", "success"]);
  },
  async "the state of a thread at work is what its run has reached"() {
    const thread = await client.threads.create();
    const run = await client.runs.create(thread.thread_id, "steps", { input: { pause_ms: 400 }, streamMode: "updates" });
    for await (const part of client.runs.joinStream(thread.thread_id, run.run_id)) if (part.event === "updates" && part.data.one) break;
    const state = await client.threads.getState(thread.thread_id);
    assert.equal(state.values.ran.length, 1);
    assert.deepEqual(state.next, ["two"]);
    assert.ok((await client.threads.getHistory(thread.thread_id)).length >= 2);
    await client.runs.join(thread.thread_id, run.run_id);
    assert.equal((await client.threads.getState(thread.thread_id)).values.ran.length, 3);
  },
  async "state is updated from outside, at any checkpoint"() {
    const thread = await client.threads.create();
    await client.runs.wait(thread.thread_id, "approve", { input: {} });
    await client.threads.updateState(thread.thread_id, { values: { note: "by hand" }, asNode: "ask" });
    const state = await client.threads.getState(thread.thread_id);
    assert.equal(state.values.note, "by hand");
    assert.deepEqual(state.next, []);
  },
  async "a failing graph is told as it failed"() {
    const thread = await client.threads.create();
    const parts = await collect(client.runs.stream(thread.thread_id, "fails", { input: { x: 1 } }));
    const error = parts.find((p) => p.event === "error");
    assert.equal(error.data.message, "boom");
    assert.equal((await client.threads.get(thread.thread_id)).status, "error");
    await assert.rejects(client.runs.wait(thread.thread_id, "fails", { input: { x: 1 } }), /boom/);
  },
  async "reject, enqueue, interrupt and rollback"() {
    const thread = await client.threads.create();
    const slow = (text, wait_ms, multitaskStrategy) =>
      client.runs.create(thread.thread_id, "relay", { input: { ...human(text), wait_ms }, multitaskStrategy });
    const first = await slow("one", 600);
    await assert.rejects(slow("two", 0, "reject"), /409/);
    const second = await slow("three", 0, "enqueue");
    await client.runs.join(thread.thread_id, first.run_id);
    await client.runs.join(thread.thread_id, second.run_id);
    const third = await slow("four", 60_000);
    const fourth = await slow("five", 0, "interrupt");
    await client.runs.join(thread.thread_id, fourth.run_id);
    assert.equal((await client.runs.get(thread.thread_id, third.run_id)).status, "interrupted");
    const fifth = await slow("six", 60_000);
    const sixth = await slow("seven", 0, "rollback");
    const values = await client.runs.join(thread.thread_id, sixth.run_id);
    await assert.rejects(client.runs.get(thread.thread_id, fifth.run_id), /404/);
    const said = values.messages.map((m) => m.content);
    assert.deepEqual(said.filter((t) => t.startsWith("relay")), ["relay: one", "relay: three", "relay: five", "relay: seven"]);
    assert.ok(!said.includes("six"), said.join("|"));
  },
  async "cancel waits until the run has stopped"() {
    const thread = await client.threads.create();
    const run = await client.runs.create(thread.thread_id, "relay", { input: { ...human("x"), wait_ms: 60_000 } });
    await client.runs.cancel(thread.thread_id, run.run_id, true);
    assert.equal((await client.runs.get(thread.thread_id, run.run_id)).status, "interrupted");
  },
  async "a resumable stream is joined without gap"() {
    const thread = await client.threads.create();
    const run = await client.runs.create(thread.thread_id, "count", {
      input: { to: 60, pause_ms: 10 }, streamMode: "custom", streamResumable: true,
    });
    const seen = [];
    let last;
    const abort = new AbortController();
    try {
      for await (const part of client.runs.joinStream(thread.thread_id, run.run_id, { lastEventId: "-1", signal: abort.signal })) {
        if (part.event === "custom") seen.push(part.data.n);
        last = part.id;
        if (seen.length === 20) break;
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
    abort.abort();
    assert.ok(last);
    for await (const part of client.runs.joinStream(thread.thread_id, run.run_id, { lastEventId: last }))
      if (part.event === "custom") seen.push(part.data.n);
    assert.deepEqual(seen, Array.from({ length: 60 }, (_, i) => i + 1));
  },
  async "a thread is followed over all of its runs"() {
    const thread = await client.threads.create();
    const seen = [];
    let done = 0;
    let last = "-";
    const follow = async (stopAfter) => {
      const abort = new AbortController();
      try {
        for await (const part of client.threads.joinStream(thread.thread_id, { lastEventId: last, signal: abort.signal })) {
          last = part.id;
          if (part.event === "custom") seen.push(part.data.n);
          if (part.event === "metadata" && part.data.status === "run_done") done++;
          if (done === 2 || seen.length === stopAfter) break;
        }
      } finally {
        abort.abort();
      }
    };
    const first = client.runs.create(thread.thread_id, "count", { input: { to: 30, pause_ms: 5 }, streamMode: "custom", streamResumable: true });
    await first;
    await client.runs.create(thread.thread_id, "count", { input: { to: 30 }, streamMode: "custom", streamResumable: true });
    await follow(20);
    await follow();
    const numbers = Array.from({ length: 30 }, (_, i) => i + 1);
    assert.deepEqual(seen, [...numbers, ...numbers]);
    await client.threads.updateState(thread.thread_id, { values: { counted: 0 }, asNode: "count" });
    const kinds = [];
    const abort = new AbortController();
    for await (const part of client.threads.joinStream(thread.thread_id, { lastEventId: "-", streamMode: ["lifecycle", "state_update"], signal: abort.signal })) {
      kinds.push(part.event === "metadata" ? (part.data.status ?? "start") : part.event);
      if (kinds.includes("state_update")) break;
    }
    abort.abort();
    assert.deepEqual(kinds, ["start", "run_done", "start", "run_done", "state_update"]);
  },
};

for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log("ok", name);
  } catch (error) {
    console.log("FAILED", name);
    console.error(name, error);
    process.exit(1);
  }
}
