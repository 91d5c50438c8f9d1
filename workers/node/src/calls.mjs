import { libraryConfig, storedMetadata } from './config.mjs';
import { CHECKPOINT_VERBS, batch } from './custom.mjs';
import { failureOf, readable } from './failure.mjs';
import { Kind } from './frames.mjs';
import { toJSON } from './json.mjs';
import { instantiate } from './loader.mjs';
import { HTTPRefusal, Refused } from './refusals.mjs';
import { commandOf } from './runner.mjs';
import { OUTSIDE } from './saver.mjs';
import { threadState } from './snapshot.mjs';

/**
 * Questions about graphs outside of runs (worker/wire/DESIGN.md, Calls).
 *
 * @typedef {import('./worker.mjs').Tools} Tools
 */

/** @type {Record<string, (tools: Tools, call: any, body: Buffer) => Promise<any>>} */
const VERBS = {
  'state.get': getState,
  'state.history': getHistory,
  'state.update': updateState,
  'graph.schemas': describe,
  'graph.draw': describe,
  'graph.subgraphs': describe,
  'auth.authenticate': ({ parts }, call, body) => present(parts.auth, 'auth.path').authenticate(call, body),
  'auth.authorize': ({ parts }, call) => present(parts.auth, 'auth.path').authorize(call),
  'embed.texts': ({ parts }, call) => present(parts.embedder, 'store.index.embed').texts(call.texts ?? []),
  'crypt.encrypt': crypt,
  'crypt.decrypt': crypt,
  'store.batch': ({ parts }, call) => batch(present(parts.store, 'store.path'), call.ops ?? []),
  ...Object.fromEntries(Object.entries(CHECKPOINT_VERBS).map(([verb, act]) => [verb, ofSaver(act)])),
};

/** @param {Tools} tools @param {any} call */
async function crypt({ parts }, call) {
  return present(parts.encryption, 'encryption').crypt(call);
}

/** @param {(saver: any, call: any) => Promise<any>} act @returns {(tools: Tools, call: any) => Promise<any>} */
function ofSaver(act) {
  return ({ parts }, call) => act(present(parts.checkpointer, 'checkpointer.path'), call);
}

/** @template T @param {T | undefined} part @param {string} name @returns {T} */
function present(part, name) {
  if (part === undefined) throw new Refused(`the configuration names no "${name}" that this worker has loaded`);
  return part;
}

/**
 * Answers one call. It never rejects.
 *
 * @param {Tools} tools
 * @param {number} stream
 * @param {any} call the CALL envelope
 * @param {Buffer} body the payload
 * @param {AbortSignal} signal aborted when nobody waits any more
 */
export async function answer(tools, stream, call, body, signal) {
  try {
    const verb = Object.hasOwn(VERBS, call.verb) ? VERBS[call.verb] : undefined;
    if (!verb) throw new Refused(`the worker does not know the call "${call.verb}"`);
    const result = await verb(tools, call, body);
    if (!signal.aborted) tools.link.send(Kind.RETURN, stream, { ok: true }, toJSON(result));
  } catch (error) {
    tools.link.send(Kind.RETURN, stream, { ok: false, error: told(readable(error)) });
  }
}

/** @param {unknown} error */
function told(error) {
  if (error instanceof HTTPRefusal) return { ...failureOf(error), code: 'http', status: error.status, headers: error.headers };
  const { code = 'internal' } = /** @type {any} */ (error) ?? {};
  return { ...failureOf(error), code: ['invalid', 'not_found', 'stale'].includes(code) ? code : 'internal' };
}

/** @param {Tools} tools @param {any} call */
async function describe(tools, call) {
  const loaded = tools.graph(call.graph_id);
  const config = libraryConfig(call.config);
  return tools.describer.answer(loaded, await instantiate(loaded, config, { access: 'assistants.read' }), config, call);
}

/** @param {Tools} tools @param {any} call */
async function getState(tools, call) {
  const { graph, config } = await open(tools, call, 'threads.read');
  const state = await graph.getState(config, { subgraphs: call.subgraphs === true });
  const { checkpoint_id } = config.configurable;
  if (checkpoint_id && !state.createdAt) throw new Refused(`the thread has no checkpoint ${checkpoint_id}`, 'not_found');
  return threadState(state);
}

/** @param {Tools} tools @param {any} call */
async function getHistory(tools, call) {
  const { graph, config } = await open(tools, call, 'threads.read');
  const { limit, before, filter } = call;
  const options = {
    ...(limit === undefined || limit === null ? {} : { limit }),
    ...(before ? { before: { configurable: { checkpoint_id: before } } } : {}),
    ...(filter ? { filter } : {}),
  };
  const states = [];
  for await (const state of graph.getStateHistory(config, options)) states.push(threadState(state));
  return states;
}

/** @param {Tools} tools @param {any} call */
async function updateState(tools, call) {
  const { graph, config } = await open(tools, call, 'threads.update');
  const supersteps = call.supersteps.map((/** @type {any[]} */ step) => ({ updates: step.map((update) => updateOf(update, tools)) }));
  const updated = await applied(graph, config, supersteps);
  const { thread_id } = config.configurable;
  const state = await graph.getState({ configurable: { thread_id, checkpoint_ns: '' } });
  return { config: updated, snapshot: threadState(state) };
}

/** @param {any} update @param {Tools} tools */
function updateOf({ values, as_node, command }, tools) {
  return {
    values: command ? commandOf(command, tools.library.langgraph) : values ?? null,
    ...(as_node === undefined || as_node === null ? {} : { asNode: as_node }),
  };
}

/** What the graph says against an update is the caller's to mend. @param {any} graph @param {any} config @param {any[]} supersteps */
async function applied(graph, config, supersteps) {
  try {
    return await graph.bulkUpdateState(config, supersteps);
  } catch (error) {
    if (/** @type {any} */ (error)?.storage) throw error;
    const { error: type, message } = failureOf(error);
    throw Object.assign(new Refused(message), { name: type });
  }
}

/** @param {Tools} tools @param {any} call @param {import('./loader.mjs').Access} access */
async function open(tools, call, access) {
  const config = libraryConfig(call.config);
  config.configurable.checkpoint_ns ??= '';
  const made = await instantiate(tools.graph(call.graph_id), config, { access });
  const graph = tools.bind(made, call.graph_id, { ...OUTSIDE, extra: storedMetadata(config.metadata) }, 0);
  return { graph, config };
}
