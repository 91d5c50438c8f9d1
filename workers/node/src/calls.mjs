import { libraryConfig, storedMetadata } from './config.mjs';
import { failureOf } from './failure.mjs';
import { Kind } from './frames.mjs';
import { toJSON } from './json.mjs';
import { instantiate } from './loader.mjs';
import { commandOf } from './runner.mjs';
import { OUTSIDE } from './saver.mjs';
import { threadState } from './snapshot.mjs';

/**
 * Questions about graphs outside of runs (worker/wire/DESIGN.md, Calls).
 *
 * @typedef {import('./worker.mjs').Tools} Tools
 */

/** A call that cannot be answered as it was asked. */
class CallError extends Error {
  /** @param {'invalid' | 'not_found'} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.name = 'CallError';
    this.code = code;
  }
}

/** @type {Record<string, (tools: Tools, call: any) => Promise<any>>} */
const VERBS = { 'state.get': getState, 'state.history': getHistory, 'state.update': updateState };

/**
 * Answers one call. It never rejects.
 *
 * @param {Tools} tools
 * @param {number} stream
 * @param {any} call the CALL envelope
 * @param {AbortSignal} signal aborted when nobody waits any more
 */
export async function answer(tools, stream, call, signal) {
  try {
    const verb = VERBS[call.verb];
    if (!verb) throw new CallError('invalid', `the worker does not know the call "${call.verb}"`);
    const result = await verb(tools, call);
    if (!signal.aborted) tools.link.send(Kind.RETURN, stream, { ok: true }, toJSON(result));
  } catch (error) {
    const { code = 'internal' } = /** @type {any} */ (error) ?? {};
    const known = ['invalid', 'not_found', 'stale'].includes(code) ? code : 'internal';
    tools.link.send(Kind.RETURN, stream, { ok: false, error: { ...failureOf(error), code: known } });
  }
}

/** @param {Tools} tools @param {any} call */
async function getState(tools, call) {
  const { graph, config } = await open(tools, call, 'threads.read');
  return threadState(await graph.getState(config, { subgraphs: call.subgraphs === true }));
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
    throw Object.assign(new CallError('invalid', message), { name: type });
  }
}

/** @param {Tools} tools @param {any} call @param {import('./loader.mjs').Access} access */
async function open(tools, call, access) {
  const config = libraryConfig(call.config);
  config.configurable.checkpoint_ns ??= '';
  const made = await instantiate(tools.graph(call.graph_id), config, { access });
  const graph = tools.bind(made, { ...OUTSIDE, extra: storedMetadata(config.metadata) }, 0);
  return { graph, config };
}
