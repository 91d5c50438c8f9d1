package robust_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
)

// The Auth object of an application: who sends `Bearer ann` is ann, and everybody has what is his own.
const authPython = `
from langgraph_sdk import Auth

auth = Auth()

@auth.authenticate
async def who(authorization: str | None):
    if not (authorization or "").startswith("Bearer "):
        raise Auth.exceptions.HTTPException(status_code=401, detail="who are you?", headers={"X-Hint": "token"})
    name = authorization.removeprefix("Bearer ")
    return {"identity": name, "permissions": ["p"], "token": "secret-of-" + name}

@auth.on
async def own(ctx: Auth.types.AuthContext, value):
    if ctx.action.startswith("create"):
        value.setdefault("metadata", {})["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}

@auth.on.store
async def below(ctx: Auth.types.AuthContext, value):
    value["namespace"] = (ctx.user.identity, *(value["namespace"] or ()))
`

const authNode = `
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";

export const auth = new Auth()
  .authenticate(async (request) => {
    const sent = request.headers.get("authorization") ?? "";
    if (!sent.startsWith("Bearer ")) throw new HTTPException(401, { message: "who are you?", headers: { "X-Hint": "token" } });
    const name = sent.slice(7);
    return { identity: name, permissions: ["p"], token: "secret-of-" + name };
  })
  .on("*", ({ action, user, value }) => {
    if (action.startsWith("create")) value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity };
  })
  .on("store", ({ user, value }) => {
    value.namespace = [user.identity, ...(value.namespace ?? [])];
  });
`

const whoPython = `
import operator
from typing import Annotated, TypedDict
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    who: Annotated[list, operator.add]

async def node(state: State, config: RunnableConfig):
    c = config["configurable"]
    return {"who": [c["langgraph_auth_user"]["identity"], c["langgraph_auth_user_id"], c["langgraph_auth_permissions"][0]]}

g = StateGraph(State)
g.add_node("node", node)
g.add_edge(START, "node")
who = g.compile()
`

const whoNode = `
import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ who: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }) });
export const who = new StateGraph(State).addNode("node", (_state, { configurable: c }) => ({
  who: [c.langgraph_auth_user.identity, c.langgraph_auth_user_id, c.langgraph_auth_permissions[0]],
})).addEdge(START, "node").compile();
`

// twoUsersPython is ann and bob through the SDK: whatever bob tries on what is ann's is refused like what is nobody's.
const twoUsersPython = `
import sys, uuid
import httpx
from langgraph_sdk import get_sync_client

url = sys.argv[1]
ann, bob = (get_sync_client(url=url, api_key=None, headers={"Authorization": f"Bearer {name}"}) for name in ("ann", "bob"))
nobody = get_sync_client(url=url, api_key=None)

def status(call):
    try:
        result = call()
        list(result) if hasattr(result, "__next__") else result
    except httpx.HTTPStatusError as error:
        return error.response.status_code
    except Exception as error:
        return getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None) or repr(error)
    return 200

assert status(lambda: nobody.threads.search()) == 401, status(lambda: nobody.threads.search())
assistant = ann.assistants.create("who")["assistant_id"]
thread = ann.threads.create()["thread_id"]
values = ann.runs.wait(thread, "who", input={})
assert values["who"] == ["ann", "ann", "p"], values
run = ann.runs.list(thread)[0]["run_id"]
later = ann.runs.create(thread, "who", input={}, after_seconds=86400)["run_id"]
cron = ann.crons.create("who", schedule="0 0 1 1 *")["cron_id"]
ann.store.put_item(["notes"], "k", {"v": 1})
checkpoint = ann.threads.get_state(thread)["checkpoint"]
seen = repr([ann.threads.get(thread), ann.threads.get_state(thread), ann.threads.get_history(thread, limit=10), ann.runs.list(thread),
             ann.runs.get(thread, run), ann.crons.search(), ann.threads.get_state(thread, checkpoint_id=checkpoint["checkpoint_id"])])
assert "secret-of" not in seen and "langgraph_auth" not in seen, seen

hidden = {
    "assistant": lambda: bob.assistants.get(assistant),
    "schemas": lambda: bob.assistants.get_schemas(assistant),
    "graph": lambda: bob.assistants.get_graph(assistant),
    "versions": lambda: bob.assistants.get_versions(assistant),
    "update assistant": lambda: bob.assistants.update(assistant, name="his"),
    "delete assistant": lambda: bob.assistants.delete(assistant),
    "run of assistant": lambda: bob.runs.wait(None, assistant, input={}),
    "cron of assistant": lambda: bob.crons.create(assistant, schedule="0 0 1 1 *"),
    "thread": lambda: bob.threads.get(thread),
    "update thread": lambda: bob.threads.update(thread, metadata={"owner": "bob"}),
    "delete thread": lambda: bob.threads.delete(thread),
    "state": lambda: bob.threads.get_state(thread),
    "state by id": lambda: bob.threads.get_state(thread, checkpoint_id=checkpoint["checkpoint_id"]),
    "state by checkpoint": lambda: bob.threads.get_state(thread, checkpoint=checkpoint),
    "update state": lambda: bob.threads.update_state(thread, {"who": ["bob"]}),
    "history": lambda: bob.threads.get_history(thread),
    "thread stream": lambda: bob.threads.join_stream(thread),
    "run": lambda: bob.runs.create(thread, "who", input={}),
    "run, create": lambda: bob.runs.create(thread, "who", input={}, if_not_exists="create"),
    "run, rollback": lambda: bob.runs.create(thread, "who", input={}, multitask_strategy="rollback"),
    "stream": lambda: bob.runs.stream(thread, "who", input={}),
    "runs": lambda: bob.runs.list(thread),
    "its run": lambda: bob.runs.get(thread, run),
    "join": lambda: bob.runs.join(thread, run),
    "join stream": lambda: bob.runs.join_stream(thread, run),
    "cancel": lambda: bob.runs.cancel(thread, later),
    "delete run": lambda: bob.runs.delete(thread, run),
    "cron on thread": lambda: bob.crons.create_for_thread(thread, "who", schedule="0 0 1 1 *"),
    "delete cron": lambda: bob.crons.delete(cron),
}
wrong = {name: got for name, call in hidden.items() if (got := status(call)) != 404}
assert status(lambda: bob.threads.copy(thread)) == 409 and status(lambda: bob.threads.create(thread_id=thread, if_exists="do_nothing")) == 409
assert not wrong, wrong
assert [bob.threads.search(), bob.threads.count(), bob.assistants.search(), bob.crons.search(), bob.store.search_items([])["items"]] == [[], 0, [], [], []]
assert bob.store.get_item(["notes"], "k") is None
assert ann.store.get_item(["notes"], "k")["namespace"] == ["ann", "notes"]
assert ann.runs.get(thread, later)["status"] == "pending" and ann.threads.get(thread)["metadata"]["owner"] == "ann"
assert len(ann.threads.search()) == 1 and len(ann.crons.search()) == 1
print("fine")
`

const twoUsersNode = `
import { Client } from "@langchain/langgraph-sdk";

const apiUrl = process.argv[2];
const user = (name) => new Client({ apiUrl, apiKey: null, callerOptions: { maxRetries: 0 }, defaultHeaders: { Authorization: "Bearer " + name } });
const [ann, bob] = [user("ann"), user("bob")];
const status = async (call) => {
  try {
    const result = await call();
    if (result?.[Symbol.asyncIterator]) for await (const _ of result);
    return 200;
  } catch (error) {
    return error.status ?? Number(/HTTP (\d+)/.exec(String(error))?.[1]) ?? String(error);
  }
};
const must = (good, ...what) => { if (!good) { console.error(...what); process.exit(1); } };

const nobody = new Client({ apiUrl, apiKey: null, callerOptions: { maxRetries: 0 } });
must((await status(() => nobody.threads.search())) === 401, "nobody");
const { assistant_id } = await ann.assistants.create({ graphId: "who" });
const { thread_id } = await ann.threads.create();
const values = await ann.runs.wait(thread_id, "who", { input: {} });
must(JSON.stringify(values.who) === '["ann","ann","p"]', values);
const { run_id } = (await ann.runs.list(thread_id))[0];
const later = await ann.runs.create(thread_id, "who", { input: {}, afterSeconds: 86400 });
const cron = await ann.crons.create("who", { schedule: "0 0 1 1 *" });
await ann.store.putItem(["notes"], "k", { v: 1 });
const { checkpoint } = await ann.threads.getState(thread_id);
const seen = JSON.stringify([await ann.threads.get(thread_id), await ann.threads.getState(thread_id), await ann.threads.getHistory(thread_id),
  await ann.runs.list(thread_id), await ann.threads.getState(thread_id, checkpoint.checkpoint_id)]);
must(!seen.includes("secret-of") && !seen.includes("langgraph_auth"), seen);

const hidden = {
  assistant: () => bob.assistants.get(assistant_id), schemas: () => bob.assistants.getSchemas(assistant_id),
  graph: () => bob.assistants.getGraph(assistant_id), versions: () => bob.assistants.getVersions(assistant_id),
  updateAssistant: () => bob.assistants.update(assistant_id, { name: "his" }), deleteAssistant: () => bob.assistants.delete(assistant_id),
  runOfAssistant: () => bob.runs.wait(null, assistant_id, { input: {} }), thread: () => bob.threads.get(thread_id),
  updateThread: () => bob.threads.update(thread_id, { metadata: {} }), deleteThread: () => bob.threads.delete(thread_id),
  state: () => bob.threads.getState(thread_id), stateById: () => bob.threads.getState(thread_id, checkpoint.checkpoint_id),
  updateState: () => bob.threads.updateState(thread_id, { values: { who: ["bob"] } }), history: () => bob.threads.getHistory(thread_id),
  threadStream: () => bob.threads.joinStream(thread_id), run: () => bob.runs.create(thread_id, "who", { input: {} }),
  runCreate: () => bob.runs.create(thread_id, "who", { input: {}, ifNotExists: "create" }), stream: () => bob.runs.stream(thread_id, "who", { input: {} }),
  runs: () => bob.runs.list(thread_id), itsRun: () => bob.runs.get(thread_id, run_id), join: () => bob.runs.join(thread_id, run_id),
  joinStream: () => bob.runs.joinStream(thread_id, run_id), cancel: () => bob.runs.cancel(thread_id, later.run_id),
  deleteRun: () => bob.runs.delete(thread_id, run_id), cronOnThread: () => bob.crons.createForThread(thread_id, "who", { schedule: "0 0 1 1 *" }),
  deleteCron: () => bob.crons.delete(cron.cron_id),
};
for (const [name, call] of Object.entries(hidden)) {
  const got = await status(call);
  must(got === 404, name, got);
}
must((await status(() => bob.threads.copy(thread_id))) === 409, "copy");
must((await bob.threads.search()).length + (await bob.assistants.search()).length + (await bob.crons.search()).length === 0, "lists");
must((await bob.store.searchItems([])).items.length === 0 && !(await bob.store.getItem(["notes"], "k")), "items");
must((await ann.store.getItem(["notes"], "k")).value.v === 1, "ann's item");
must((await ann.runs.get(thread_id, later.run_id)).status === "pending", "ann's run");
console.log("fine");
`

// Two users of the real binary, its real workers and the stock SDKs of both languages do not see each other.
func TestUsersOfStockClientsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	for _, language := range both {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			m := withAuth(t, language).start()
			for _, c := range []struct{ file, text, program string }{
				{"users.py", twoUsersPython, python(t)}, {"users.mjs", twoUsersNode, "node"},
			} {
				dir := t.TempDir()
				if err := os.Symlink(filepath.Join(node(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, c.file)
				write(t, file, c.text)
				out, err := exec.CommandContext(t.Context(), c.program, file, m.address).CombinedOutput()
				if err != nil || !strings.Contains(string(out), "fine") {
					t.Errorf("%s: %v\n%s\n%s", c.file, err, out, m.said())
				}
			}
			if said := m.said(); strings.Contains(said, "secret-of") {
				t.Errorf("the log tells users' secrets:\n%s", said)
			}
		})
	}
}

func withAuth(t *testing.T, language slipway.Language) *fleet {
	return newFleet(t, language, "", func(b *slipway.Bundle, dir string) {
		ending := map[slipway.Language][3]string{slipway.Python: {".py", authPython, whoPython}, slipway.Node: {".mjs", authNode, whoNode}}[language]
		write(t, filepath.Join(dir, "auth"+ending[0]), ending[1])
		write(t, filepath.Join(dir, "who"+ending[0]), ending[2])
		b.Graphs["who"] = slipway.BundleGraph{Spec: "./who" + ending[0] + ":who", Language: language}
		b.Config = json.RawMessage(`{"auth":{"path":"./auth` + ending[0] + `:auth"}}`)
	})
}
