// Uses the types of the agent server's description; it is checked and not run.
import createClient from "openapi-fetch";
import type { paths } from "./agent-schema.js";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:1" });

export async function talk(): Promise<string> {
  const { data: thread } = await client.POST("/threads", { body: { metadata: { purpose: "types" }, ttl: { ttl: 5 } } });
  if (!thread) throw new Error("no thread");
  const { data: run, error } = await client.POST("/threads/{thread_id}/runs", {
    params: { path: { thread_id: thread.thread_id } },
    body: {
      assistant_id: "agent", input: { messages: [{ role: "user", content: "hi" }] }, stream_mode: ["values", "updates"], multitask_strategy: "reject",
      config: { configurable: { who: "me" }, recursion_limit: 5 }, command: { goto: [{ node: "n", input: 1 }, "m"] }, interrupt_before: "*",
    },
  });
  if (error) return error.detail;
  const found = await client.POST("/threads/search", { body: { limit: 2, sort_by: "created_at", select: ["thread_id", "status"] } });
  // @ts-expect-error a strategy that there is not
  await client.POST("/runs", { body: { assistant_id: "agent", multitask_strategy: "queue" } });
  // @ts-expect-error a run without an assistant
  await client.POST("/runs", { body: { input: {} } });
  return `${run.status} ${run.run_id} ${found.data?.[0]?.status}`;
}
