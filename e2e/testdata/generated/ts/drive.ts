// Drives a control service with the client that was generated from its own description. Everything is typed by it: what
// tsc lets through here is what the description promises, and what runs is what the service does.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Revision = components["schemas"]["Revision"];

const [baseUrl, key] = [process.env["SLIPWAY_URL"] ?? "", process.env["SLIPWAY_API_KEY"] ?? ""];
const client = createClient<paths>({ baseUrl, headers: { "X-Api-Key": key } });

/** What the service answers when all is well. */
function good<T>(answer: { data?: T; error?: unknown; response: Response }, status: number): T {
  assert.equal(answer.response.status, status, JSON.stringify(answer.error));
  assert.ok(answer.data !== undefined, "an answer without a body");
  return answer.data;
}

async function ended(deployment_id: string, revision_id: string): Promise<Revision> {
  for (;;) {
    const path = { deployment_id, revision_id };
    const revision = good(await client.GET("/v2/deployments/{deployment_id}/revisions/{revision_id}", { params: { path } }), 200);
    switch (revision.status) {
      case "DEPLOYED": case "CREATE_FAILED": case "BUILD_FAILED": case "DEPLOY_FAILED": case "SKIPPED": case "INTERRUPTED":
        return revision;
      default:
        await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

const templates = good(await client.GET("/v2/templates", {}), 200);
const template = templates.resources.find((t) => t.language === "node");
assert.ok(template, "no template in JavaScript");

const body: components["schemas"]["DeploymentCreateRequest"] = {
  name: "from-typescript", source: "internal_template", source_config: { template_id: template.id, build_on_push: null },
  source_revision_config: {}, secrets: [{ name: "GREETING", value: "hello" }],
};
const made = good(await client.POST("/v2/deployments", { body }), 201);
assert.equal(made.name, body.name);
assert.equal(made.active_revision_id, null);
assert.ok(made.latest_revision_id);
const path = { deployment_id: made.id };

const twice = await client.POST("/v2/deployments", { body });
assert.equal(twice.response.status, 409);
assert.equal(typeof twice.error?.detail, "string");

const wrong = await client.POST("/v2/deployments", { body: { ...body, name: "-" } });
assert.equal(wrong.response.status, 422);
const problems = wrong.error?.detail;
assert.ok(Array.isArray(problems));
assert.deepEqual(problems[0]?.loc, ["body", "name"]);

const first = await ended(made.id, made.latest_revision_id);
assert.equal(first.status, "DEPLOYED", first.status_reason ?? "");

const patch: components["schemas"]["DeploymentPatchRequest"] = {
  source_config: null, secrets: [{ name: "GREETING", value: made.secrets[0]?.value ?? "" }, { name: "MORE", value: "x" }],
};
const patched = good(await client.PATCH("/v2/deployments/{deployment_id}", { params: { path }, body: patch }), 200);
assert.ok(patched.latest_revision_id && patched.latest_revision_id !== made.latest_revision_id, "the PATCH made no revision");
assert.deepEqual(patched.secrets.map((s) => s.name), ["GREETING", "MORE"]);
const second = await ended(made.id, patched.latest_revision_id);
assert.equal(second.status, "DEPLOYED", second.status_reason ?? "");

const revisions = good(await client.GET("/v2/deployments/{deployment_id}/revisions", { params: { path, query: { limit: 1, status: "DEPLOYED" } } }), 200);
assert.equal(revisions.resources[0]?.id, second.id);
const events = good(await client.GET("/v2/deployments/{deployment_id}/revisions/{revision_id}/events", { params: { path: { ...path, revision_id: first.id } } }), 200);
assert.equal(events.events[0]?.status, "CREATING");
const logs = good(await client.GET("/v2/deployments/{deployment_id}/revisions/{revision_id}/logs", {
  params: { path: { ...path, revision_id: first.id }, query: { type: "build", order: "desc", limit: 5 } },
}), 200);
assert.ok(logs.logs.every((line) => line.timestamp > 0 && line.message.length >= 0));
const slot = good(await client.POST("/v2/deployments/{deployment_id}/upload-url", { params: { path } }), 200);
assert.ok(slot.upload_url.startsWith(baseUrl));
const projects = good(await client.GET("/v2/tracing-projects", { params: { query: { name: body.name } } }), 200);
assert.equal(projects.resources[0]?.deployment_id, made.id);

const over = await client.POST("/v2/deployments/{deployment_id}/revisions/{revision_id}/interruption", { params: { path: { ...path, revision_id: first.id } } });
assert.equal(over.response.status, 400);

const gone = await client.DELETE("/v2/deployments/{deployment_id}", { params: { path, query: { delete_tracing_project: true } } });
assert.equal(gone.response.status, 204);
assert.equal((await client.GET("/v2/deployments/{deployment_id}", { params: { path } })).response.status, 404);
const stranger = createClient<paths>({ baseUrl, headers: { "X-Api-Key": "slw_nobody" } });
assert.equal((await stranger.GET("/v2/deployments", {})).response.status, 401);
