// The same graph in this process with an in-memory saver: node bare.mjs RUNS CONCURRENCY prints {"runs_per_s","p50_ms"}.
import { randomUUID } from "node:crypto";
import { MemorySaver } from "@langchain/langgraph";
import { builder } from "./graph.mjs";

const [runs, concurrency] = process.argv.slice(2).map(Number);

async function measure(count) {
  const graph = builder.compile({ checkpointer: new MemorySaver() });
  const times = [];
  let left = count;
  const began = performance.now();
  await Promise.all(Array.from({ length: concurrency }, async () => {
    while (left-- > 0) {
      const start = performance.now();
      await graph.invoke({ messages: [{ role: "user", content: "hi" }] }, { configurable: { thread_id: randomUUID() } });
      times.push(performance.now() - start);
    }
  }));
  const seconds = (performance.now() - began) / 1000;
  times.sort((a, b) => a - b);
  return { runs_per_s: count / seconds, p50_ms: times[times.length >> 1] };
}

await measure(Math.min(runs, 200)); // warm-up
console.log(JSON.stringify(await measure(runs)));
