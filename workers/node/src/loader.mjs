import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { failureOf, traceOf } from './failure.mjs';

/**
 * A graph as it was exported: a compiled one, or a factory that makes one for each operation (reference 13).
 *
 * @typedef {{compiled: any} | {factory: (config: any, runtime: any) => any}} Loaded
 * @typedef {{ok: true, factory: boolean} | {ok: false, error: import('./failure.mjs').Failure}} Outcome
 * @typedef {'threads.create_run' | 'threads.update' | 'threads.read' | 'assistants.read'} Access
 */

/** A graph that cannot be loaded or is not one; its message is one sentence for the user. */
export class LoadError extends Error {
  /** @param {string} message @param {unknown} [cause] */
  constructor(message, cause) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'LoadError';
  }
}

/** A reader of graph specs `./dir/file.ts:export`. @param {string} spec @returns {{file: string, name: string}} */
export function parseSpec(spec) {
  const at = spec.lastIndexOf(':');
  if (at <= 0) return { file: spec, name: 'default' };
  return { file: spec.slice(0, at), name: spec.slice(at + 1) || 'default' };
}

/**
 * Imports what a spec names.
 *
 * @param {string} spec
 * @param {string} root the directory specs are relative to
 * @returns {Promise<Loaded>}
 */
export async function load(spec, root) {
  const { file, name } = parseSpec(spec);
  const found = await named(spec, root);
  if (isFactory(found)) return { factory: found };
  return { compiled: compiledFrom(found, `${file} export "${name}"`) };
}

/**
 * What a spec names: an export of a file, awaited if it is a promise.
 *
 * @param {string} spec
 * @param {string} root the directory specs are relative to
 * @returns {Promise<any>}
 */
export async function named(spec, root) {
  const { file, name } = parseSpec(spec);
  return exported(await importFile(file, root), file, name);
}

/** Another export of the file that a spec names, undefined if there is none. @param {string} spec @param {string} root @param {string} name @returns {Promise<any>} */
export async function beside(spec, root, name) {
  return pick(await importFile(parseSpec(spec).file, root), name);
}

/** @param {string} file @param {string} root @returns {Promise<any>} */
async function importFile(file, root) {
  const full = path.resolve(root, file);
  if (!existsSync(full)) throw new LoadError(`cannot load ${file}: there is no such file; paths are relative to the directory of the graph configuration`);
  try {
    return await import(pathToFileURL(full).href);
  } catch (error) {
    throw new LoadError(`cannot load ${file}: ${reason(error, file)}`, error);
  }
}

/** @param {unknown} error @param {string} file */
function reason(error, file) {
  const code = /** @type {any} */ (error)?.code;
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION') return `Node cannot read ${path.extname(file)} files by itself; install tsx in the application`;
  const { error: type, message } = failureOf(error);
  return `${type}: ${message.split('\n')[0]}`;
}

/** @param {any} module @param {string} file @param {string} name */
async function exported(module, file, name) {
  const found = pick(module, name);
  if (found !== undefined) return found;
  const names = [...new Set([...Object.keys(module), ...Object.keys(Object(module.default))])].filter((x) => x !== 'module.exports');
  const near = nearest(name, names);
  const hint = near ? ` (did you mean "${near}"?)` : names.length > 0 ? ` (it exports ${names.slice(0, 8).join(', ')})` : ' (it exports nothing)';
  throw new LoadError(`${file} has no export "${name}"${hint}`);
}

/** CommonJS modules put their exports on the default export. @param {any} module @param {string} name */
function pick(module, name) {
  if (name === 'default' && isCommonJS(module)) return module.default.default ?? module.default;
  return module[name] ?? (isCommonJS(module) ? module.default[name] : undefined);
}

/** @param {any} module */
function isCommonJS(module) {
  return typeof module.default === 'object' && module.default !== null && ('__esModule' in module.default || 'module.exports' in module);
}

/** @param {any} x @returns {x is (config: any, runtime: any) => any} */
function isFactory(x) {
  return typeof x === 'function' && x.lg_is_pregel !== true;
}

/**
 * Makes the graph of one operation: the compiled one, or what the factory returns for this config.
 *
 * @param {Loaded} loaded
 * @param {any} config
 * @param {{access: Access, context?: any}} operation
 */
export async function instantiate(loaded, config, operation) {
  if ('compiled' in loaded) return loaded.compiled;
  const executionRuntime = operation.access === 'threads.create_run' ? { context: operation.context ?? null } : null;
  const made = await loaded.factory(config, { accessContext: operation.access, executionRuntime });
  return compiledFrom(made, 'the graph factory');
}

/**
 * @param {any} found what was exported or returned
 * @param {string} where for the message
 * @returns {any} a compiled graph
 */
function compiledFrom(found, where) {
  if (found?.lg_is_pregel === true) return found;
  if (typeof found?.compile === 'function') return found.compile();
  if (found?.graph?.lg_is_pregel === true) return found.graph;
  throw new LoadError(`${where} is no graph but ${article(found)}; export a compiled graph, a StateGraph, an agent or a function that returns one`);
}

/** What something is, for messages. @param {any} x */
export function article(x) {
  if (x === null || x === undefined) return String(x);
  if (typeof x !== 'object') return `a ${typeof x}`;
  return `an object of ${x.constructor?.name ?? 'no class'}`;
}

/** @param {unknown} error @returns {Outcome} */
export function refusal(error) {
  const cause = error instanceof LoadError && error.cause ? error.cause : error;
  const { message } = failureOf(error);
  const type = failureOf(cause).error;
  return { ok: false, error: { error: type, message, trace: traceOf(cause) } };
}

/** What a graph carries and the server replaces (reference 13, 20). @param {string} id @param {Loaded} loaded @returns {string[]} */
export function warnings(id, loaded) {
  if (!('compiled' in loaded)) return [];
  const own = ['checkpointer', 'store'].filter((what) => typeof loaded.compiled[what] === 'object' && loaded.compiled[what] !== null);
  return own.map((what) => `graph "${id}" is compiled with its own ${what}; the server's is used instead`);
}

/** @param {string} name @param {string[]} names @returns {string | undefined} the name that was probably meant */
export function nearest(name, names) {
  const close = names.map((x) => ({ x, d: distance(name.toLowerCase(), x.toLowerCase()) })).sort((a, b) => a.d - b.d)[0];
  return close && close.d <= Math.max(2, Math.floor(name.length / 3)) ? close.x : undefined;
}

/** The number of edits between two words, a swap of neighbours counting one. @param {string} a @param {string} b */
function distance(a, b) {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array(b.length).fill(0)]);
  for (let j = 1; j <= b.length; j++) rows[0][j] = j;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + same);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.length][b.length];
}
