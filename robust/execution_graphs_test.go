package robust_test

const executionPython = `
import asyncio
import contextlib
import functools
import operator
import os
from dataclasses import dataclass
from typing import Annotated, TypedDict

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.config import get_config, get_store, get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import CachePolicy, RetryPolicy
from langgraph_sdk.runtime import ServerRuntime


class State(TypedDict, total=False):
    ran: Annotated[list, operator.add]
    x: int


def one(node, **options):
    return StateGraph(State).add_node("n", node, **options).add_edge(START, "n")


# Caches. Nodes tell the process that ran them and how often it has run them.

times = {}


def run_of(name):
    times[name] = times.get(name, 0) + 1
    return f"{os.getpid()}:{times[name]}"


def by_x(state):
    return str(state.get("x"))


cached = one(lambda state: {"ran": [run_of("cached")]}, cache_policy=CachePolicy(key_func=by_x)).compile()
short = one(lambda state: {"ran": [run_of("short")]}, cache_policy=CachePolicy(key_func=by_x, ttl=1)).compile()


@task(cache_policy=CachePolicy(key_func=lambda x: str(x)))
async def counted(x):
    return run_of("task")


@entrypoint()
async def cached_task(given: dict):
    return {"ran": [await counted(given["x"])]}


# Retries.

class Flaky(Exception):
    pass


def fails(state, runtime: Runtime):
    attempt = runtime.execution_info.node_attempt
    if attempt <= state["x"]:
        raise Flaky(f"no {attempt}")
    return {"ran": [f"attempt {attempt}"]}


async def afails(state, runtime: Runtime):
    return fails(state, runtime)


again = RetryPolicy(initial_interval=0.01, jitter=False, max_attempts=3, retry_on=Flaky)
flaky = one(afails, retry_policy=again).compile()
flaky_sync = one(fails, retry_policy=again).compile()
once = one(afails).compile()


# Limits.

def count(state):
    return {"ran": [len(state.get("ran", []))]}


def loop(last):
    return StateGraph(State).add_node("n", count).add_edge(START, "n").add_conditional_edges(
        "n", lambda state: "n" if len(state["ran"]) < last else END, ["n", END]
    )


endless = loop(1 << 30).compile()
long = loop(40).compile()
own_limit = loop(1 << 30).compile().with_config(recursion_limit=6)


# Delta channels.

def extend(state, writes):
    return [*state, *(x for w in writes for x in w)]


class Grown(TypedDict, total=False):
    seldom: Annotated[list, DeltaChannel(extend, snapshot_frequency=1000)]
    often: Annotated[list, DeltaChannel(extend, snapshot_frequency=3)]
    n: int
    until: int


def grow(state):
    n = state.get("n", 0) + 1
    return {"seldom": [n], "often": [n], "n": n}


delta = (
    StateGraph(Grown).add_node("grow", grow).add_edge(START, "grow")
    .add_conditional_edges("grow", lambda s: "grow" if s["n"] < s["until"] else END, ["grow", END]).compile()
)


# Injection.

@dataclass
class Ctx:
    name: str
    level: int = 7
    model: str = ""
    temperature: int = 0


async def see(state, config: RunnableConfig, runtime: Runtime[Ctx]):
    get_stream_writer()({"from": "writer"})
    runtime.stream_writer({"from": "runtime"})
    await runtime.store.aput(("seen",), "k", {"n": 1})
    got = await get_store().aget(("seen",), "k")
    conf, info, server, meta = config["configurable"], runtime.execution_info, runtime.server_info, config["metadata"]
    return {"ran": [{
        "model": conf.get("model"), "temperature": conf.get("temperature"), "graph": conf["graph_id"],
        "context": [type(runtime.context).__name__ == "Ctx", runtime.context.name, runtime.context.level],
        "store": got.value, "same": runtime.store is get_store(),
        "metadata": {k: meta.get(k) for k in ("of", "kind", "graph_id", "run_attempt", "langgraph_host")},
        "tags": sorted(t for t in config["tags"] if not t.startswith("graph:")), "limit": config["recursion_limit"],
        "server": [server.graph_id == conf["graph_id"], server.assistant_id == conf["assistant_id"]],
        "run": [info.run_id == conf["run_id"], info.thread_id == conf["thread_id"], meta["run_id"] == conf["run_id"]],
    }]}


sees = StateGraph(State, context_schema=Ctx).add_node("n", see).add_edge(START, "n").compile()


# Forms of graphs.

def note(text):
    return one(lambda state: {"ran": [text]})


uncompiled = note("uncompiled")
compiled = note("compiled").compile()


def factory():
    return note("factory")


async def factory_async():
    await asyncio.sleep(0)
    return note("factory_async")


def named(config):
    return note(config["configurable"].get("model", "nobody"))


def factory_config(config: RunnableConfig):
    return named(config).compile()


async def factory_unannotated(anything):
    return named(anything)


async def factory_runtime(config: RunnableConfig, runtime: ServerRuntime[Ctx]):
    made_for = runtime.execution_runtime.context.name if runtime.execution_runtime else runtime.access_context

    async def node(state):
        await runtime.store.aput(("made",), "k", {"for": made_for})
        return {"ran": [f"{runtime.access_context} {made_for} {(await runtime.store.aget(('made',), 'k')).value['for']}"]}

    return one(node)


open_ones = {"async": 0, "sync": 0}


@contextlib.asynccontextmanager
async def managed():
    open_ones["async"] += 1
    yield one(lambda state: {"ran": [f"open {open_ones['async']}"]})
    open_ones["async"] -= 1


@contextlib.contextmanager
def managed_sync(config: RunnableConfig):
    open_ones["sync"] += 1
    yield one(lambda state: {"ran": [f"open {open_ones['sync']} {config['configurable'].get('model')}"]})
    open_ones["sync"] -= 1


class Maker:
    def __init__(self, text):
        self.text = text

    def __call__(self, config: RunnableConfig):
        return note(self.text + config["configurable"]["model"])


callable_object = Maker("made ")
partial = functools.partial(lambda text, config: note(text + config["configurable"]["model"]), "partial ")


@task
async def double(x):
    return 2 * x


@entrypoint()
async def functional(given: dict, *, previous=None):
    return {"ran": [await double(given["x"]), (previous or {}).get("ran")]}


def factory_functional():
    return functional


agent = create_agent(GenericFakeChatModel(messages=iter([AIMessage("hello from the agent")] * 9)), tools=[])
`

const executionNode = `
import { Annotation, BaseChannel, DeltaChannel, END, entrypoint, getConfig, getStore, getWriter, START, StateGraph, task } from "@langchain/langgraph";
import { z } from "zod";

const State = Annotation.Root({ ran: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }), x: Annotation() });
const one = (node, options, context) => new StateGraph(State, context).addNode("n", node, options).addEdge(START, "n");

// Caches. Nodes tell the process that ran them and how often it has run them.

const times = {};
const runOf = (name) => process.pid + ":" + (times[name] = (times[name] ?? 0) + 1);
const byX = (args) => String(args[0]?.x ?? args[0]);

export const cached = one(() => ({ ran: [runOf("cached")] }), { cachePolicy: { keyFunc: byX } }).compile();
export const short = one(() => ({ ran: [runOf("short")] }), { cachePolicy: { keyFunc: byX, ttl: 1 } }).compile();
const counted = task({ name: "counted", cachePolicy: { keyFunc: byX } }, async () => runOf("task"));
export const cached_task = entrypoint("cached_task", async (given) => ({ ran: [await counted(given.x)] }));

// Retries.

class Flaky extends Error {
  name = "Flaky";
}
const fails = async (state, config) => {
  const attempt = config.executionInfo.nodeAttempt;
  if (attempt <= state.x) throw new Flaky("no " + attempt);
  return { ran: ["attempt " + attempt] };
};
const retryPolicy = { initialInterval: 10, jitter: false, maxAttempts: 3, retryOn: (e) => e instanceof Flaky, logWarning: false };
export const flaky = one(fails, { retryPolicy }).compile();
export const once = one(fails).compile();

// Limits.

const loop = (last) => new StateGraph(State)
  .addNode("n", (state) => ({ ran: [state.ran.length] }))
  .addEdge(START, "n")
  .addConditionalEdges("n", (state) => (state.ran.length < last ? "n" : END), ["n", END]);
export const endless = loop(2 ** 30).compile();
export const long = loop(40).compile();
export const own_limit = loop(2 ** 30).compile().withConfig({ recursionLimit: 6 });

// Delta channels.

const extend = (state, writes) => [...state, ...writes.flat()];
const growing = (snapshotFrequency) => () => new DeltaChannel(extend, { snapshotFrequency, initialValueFactory: () => [] });
const Grown = Annotation.Root({ seldom: growing(1000), often: growing(3), n: Annotation(), until: Annotation() });
export const delta = new StateGraph(Grown)
  .addNode("grow", (state) => {
    const n = (state.n ?? 0) + 1;
    return { seldom: [n], often: [n], n };
  })
  .addEdge(START, "grow")
  .addConditionalEdges("grow", (state) => (state.n < state.until ? "grow" : END), ["grow", END])
  .compile();

// Injection.

// The library takes no defaults from the schema of a context, and tells nodes no run.
const see = async (state, runtime) => {
  getWriter()({ from: "writer" });
  runtime.writer({ from: "runtime" });
  await runtime.store.put(["seen"], "k", { n: 1 });
  const got = await getStore().get(["seen"], "k");
  const { configurable: conf, context, metadata: meta, serverInfo: server, executionInfo: info } = runtime;
  return { ran: [{
    model: conf.model, temperature: conf.temperature, graph: conf.graph_id,
    context: [true, context.name, context.level ?? 7],
    store: got.value, same: getConfig().store === runtime.store,
    metadata: Object.fromEntries(["of", "kind", "graph_id", "run_attempt", "langgraph_host"].map((k) => [k, meta[k] ?? null])),
    tags: runtime.tags.filter((t) => !/^(graph|seq):/.test(t)).sort(), limit: runtime.recursionLimit,
    server: [server.graphId === conf.graph_id, server.assistantId === conf.assistant_id],
    run: [conf.run_id !== undefined, info.threadId === conf.thread_id, meta.run_id === conf.run_id],
  }] };
};
const Ctx = z.object({ name: z.string(), level: z.number().optional() });
export const sees = one(see, undefined, { context: Ctx }).compile();

// Forms of graphs.

const note = (text) => one(() => ({ ran: [text] }));
export const uncompiled = note("uncompiled");
export const compiled = note("compiled").compile();
export const promised = Promise.resolve(note("promised").compile());
export const factory = () => note("factory");
export const factory_async = async () => note("factory_async");
export const factory_config = (config) => note(config.configurable.model ?? "nobody").compile();
export const factory_runtime = async (config, runtime) => note(runtime.accessContext + " " + runtime.executionRuntime?.context.name);
const double = task("double", async (x) => 2 * x);
export const functional = entrypoint("functional", async (given) => ({ ran: [await double(given.x)] }));
export const factory_functional = () => functional;
export const agent = { graph: note("unwrapped").compile() };
export const factory_agent = async () => agent;
`
