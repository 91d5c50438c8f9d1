import { LoadError, article, named } from './loader.mjs';
import { Refused } from './refusals.mjs';

/**
 * Checkpointers and stores of the application (reference 13, "Custom parts").
 */

/** Methods that a checkpointer must have. */
const REQUIRED = ['getTuple', 'list', 'put', 'putWrites', 'deleteThread'];

/** Methods that a checkpointer may have, by the names of the protocol. @type {Record<string, string>} */
const OPTIONAL = { adelete_for_runs: 'deleteForRuns', acopy_thread: 'copyThread', aprune: 'prune' };

/** Methods that close what a part has opened, the first that there is. */
const CLOSERS = [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose'), 'end', 'close', 'stop'];

/**
 * What a spec names, called if it is a function.
 *
 * @param {string} spec
 * @param {string} root
 */
async function opened(spec, root) {
  const found = await named(spec, root);
  return typeof found === 'function' ? found() : found;
}

/** A checkpointer that has all required methods. @param {string} spec @param {string} root */
export async function openSaver(spec, root) {
  const saver = await opened(spec, root);
  const missing = REQUIRED.filter((name) => typeof saver?.[name] !== 'function');
  if (missing.length === REQUIRED.length) throw new LoadError(`${spec} gives ${article(saver)}; a BaseCheckpointSaver is needed`);
  if (missing.length > 0) throw new LoadError(`the checkpointer ${saver.constructor.name} of ${spec} lacks ${missing.join(', ')}`);
  return saver;
}

/** The optional methods a checkpointer has, by the names of the protocol. @param {any} saver */
export function methodsOf(saver) {
  return Object.keys(OPTIONAL).filter((name) => typeof saver[OPTIONAL[name]] === 'function');
}

/** A store, started if it wants to be. @param {string} spec @param {string} root */
export async function openStore(spec, root) {
  const store = await opened(spec, root);
  if (typeof store?.batch !== 'function') throw new LoadError(`${spec} gives ${article(store)}; a BaseStore is needed`);
  await store.start?.();
  return store;
}

/** Closes what was opened, as far as it can be. @param {any} part */
export async function close(part) {
  const closer = CLOSERS.find((name) => typeof part?.[name] === 'function');
  if (closer) await part[closer]();
}

/** Operations on whole threads with the application's checkpointer. @type {Record<string, (saver: any, call: any) => Promise<any>>} */
export const CHECKPOINT_VERBS = {
  'checkpoint.delete_thread': (saver, { thread_id }) => saver.deleteThread(thread_id),
  'checkpoint.delete_for_runs': (saver, { run_ids }) => optional(saver, 'deleteForRuns')(run_ids),
  'checkpoint.prune': (saver, { thread_ids, strategy }) => optional(saver, 'prune')(thread_ids, { strategy: strategy || 'keep_latest' }),
  'checkpoint.copy_thread': (saver, { source, target }) => (saver.copyThread ? saver.copyThread(source, target) : copied(saver, source, target)),
};

/** @param {any} saver @param {string} name @returns {Function} */
function optional(saver, name) {
  if (typeof saver[name] !== 'function') throw new Refused(`the checkpointer ${saver.constructor.name} has no ${name}`);
  return saver[name].bind(saver);
}

/** Copies a thread checkpoint by checkpoint, oldest first. @param {any} saver @param {string} source @param {string} target */
async function copied(saver, source, target) {
  const tuples = [];
  for await (const tuple of saver.list({ configurable: { thread_id: source } })) tuples.push(tuple);
  for (const tuple of tuples.reverse()) await copyOne(saver, tuple, target);
}

/** @param {any} saver @param {any} tuple @param {string} thread_id */
async function copyOne(saver, { config, checkpoint, metadata, parentConfig, pendingWrites = [] }, thread_id) {
  const parent = parentConfig?.configurable?.checkpoint_id;
  const at = { thread_id, checkpoint_ns: config.configurable.checkpoint_ns ?? '', ...(parent ? { checkpoint_id: parent } : {}) };
  const stored = await saver.put({ configurable: at }, checkpoint, metadata, checkpoint.channel_versions);
  for (const task of new Set(pendingWrites.map((/** @type {any[]} */ write) => write[0]))) {
    const writes = pendingWrites.filter((/** @type {any[]} */ write) => write[0] === task).map((/** @type {any[]} */ write) => write.slice(1));
    await saver.putWrites(stored, writes, task);
  }
}

/** Does a batch of the protocol with the application's store. @param {any} store @param {any[]} ops */
export async function batch(store, ops) {
  const results = await store.batch(ops.map(operationOf));
  return ops.map((op, i) => resultOf(op, results[i]));
}

/** @param {any} op */
function operationOf({ get, put, search, namespaces }) {
  if (get) return { namespace: get.namespace, key: get.key };
  if (put) return { namespace: put.namespace, key: put.key, value: put.value, ...(put.index === undefined ? {} : { index: put.index }) };
  if (search) return { namespacePrefix: search.namespace_prefix, filter: search.filter ?? undefined, query: search.query ?? undefined, limit: search.limit, offset: search.offset };
  if (!namespaces) throw new Refused('the store does not know this operation: there are get, put, search and namespaces');
  const matchConditions = ['prefix', 'suffix'].filter((type) => namespaces[type]).map((matchType) => ({ matchType, path: namespaces[matchType] }));
  return { matchConditions, maxDepth: namespaces.max_depth ?? undefined, limit: namespaces.limit, offset: namespaces.offset };
}

/** @param {any} op @param {any} result */
function resultOf(op, result) {
  if (op.get) return { item: result ? itemOf(result) : null };
  if (op.search) return { items: result.map(itemOf) };
  return op.namespaces ? { namespaces: result } : {};
}

/** @param {any} item */
function itemOf({ namespace, key, value, createdAt, updatedAt, score }) {
  return { namespace, key, value, created_at: createdAt, updated_at: updatedAt, ...(score === undefined ? {} : { score }) };
}
