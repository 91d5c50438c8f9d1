import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Worker } from 'node:worker_threads';

import { failureOf } from './failure.mjs';
import { versions } from './library.mjs';
import { parseSpec } from './loader.mjs';

/**
 * What the TypeScript source says of each graph's types. The compiler takes many seconds: it runs once, in a thread of its
 * own after the start, and what it finds is kept by the hashes of all files it depends on (reference 16).
 *
 * @typedef {import('./describe.mjs').Types} Types
 * @typedef {{id: string, file: string, name: string}} Subject
 * @typedef {{types: Types, files: Record<string, string>}} Kept
 */

const DEFAULT_LIMIT_MS = 30_000;

/** How much the compiler may use; a thread that wants more ends without harm to the others. */
const HEAP_MB = 1024;

const TYPESCRIPT = /\.[cm]?tsx?$/;

/** The findings of one worker. */
export class Findings {
  #root;
  #log;
  #cache;
  /** @type {Map<string, Promise<Types>>} */
  #byGraph = new Map();

  /** @param {string} root the application's directory @param {import('./log.mjs').Log} log @param {string} [cache] a directory */
  constructor(root, log, cache = process.env.SLIPWAY_SCHEMA_CACHE) {
    this.#root = root;
    this.#log = log;
    this.#cache = cache;
  }

  /** Begins to find out about the graphs that are written in TypeScript. @param {[string, string][]} specs by graph id */
  start(specs) {
    const subjects = specs.map(([id, spec]) => subjectOf(id, spec, this.#root)).filter(({ file }) => TYPESCRIPT.test(file));
    const all = this.#find(subjects);
    for (const { id } of subjects) this.#byGraph.set(id, all.then((found) => found.get(id) ?? {}));
  }

  /** What is known of a graph, once it is known. @param {string} id @returns {Promise<Types>} */
  async of(id) {
    return this.#byGraph.get(id) ?? {};
  }

  /** @param {Subject[]} subjects @returns {Promise<Map<string, Types>>} it never rejects */
  async #find(subjects) {
    /** @type {Map<string, Types>} */
    const found = new Map();
    for (const subject of subjects) {
      const kept = await this.#kept(subject);
      if (kept) found.set(subject.id, kept);
    }
    const unknown = subjects.filter(({ id }) => !found.has(id));
    if (unknown.length > 0) await this.#inspect(unknown, found).catch((error) => this.#say(failureOf(error).message));
    return found;
  }

  /** @param {Subject[]} subjects @param {Map<string, Types>} found */
  async #inspect(subjects, found) {
    const ended = new Promise((resolve, reject) => {
      const thread = new Worker(new URL('./inspect.mjs', import.meta.url), { workerData: { root: this.#root, subjects }, execArgv: [], resourceLimits: { maxOldGenerationSizeMb: HEAP_MB } });
      const limit = limitMs();
      const timer = setTimeout(() => {
        reject(new Error(`it took longer than ${limit} ms (LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS)`));
        void thread.terminate();
      }, limit);
      thread.unref();
      thread.on('message', (finding) => this.#take(finding, subjects, found));
      thread.on('error', reject);
      thread.on('exit', resolve);
      thread.on('exit', () => clearTimeout(timer));
    });
    await ended;
  }

  /** @param {any} finding @param {Subject[]} subjects @param {Map<string, Types>} found */
  #take(finding, subjects, found) {
    if (finding.missing) return this.#say(`the package ${finding.missing} is not installed in the application; add it to its devDependencies`);
    found.set(finding.id, finding.types);
    const subject = subjects.find(({ id }) => id === finding.id);
    if (subject) this.#keep(subject, finding).catch((error) => this.#log.warn(`cannot keep schemas: ${failureOf(error).message}`));
  }

  /** @param {string} why */
  #say(why) {
    this.#log.say('info', `schemas of graphs in TypeScript are not known from their source: ${why}`);
  }

  /** @param {Subject} subject @returns {Promise<Types | undefined>} */
  async #kept(subject) {
    if (!this.#cache) return undefined;
    try {
      /** @type {Kept} */
      const kept = JSON.parse(await readFile(path.join(this.#cache, this.#keyOf(subject)), 'utf8'));
      const same = await Promise.all(Object.entries(kept.files).map(async ([file, hash]) => hash === await hashOf(path.resolve(this.#root, file))));
      return same.every(Boolean) ? kept.types : undefined;
    } catch {
      return undefined; // Not there, or of a file that is there no more.
    }
  }

  /** @param {Subject} subject @param {Kept} finding */
  async #keep(subject, { types, files }) {
    if (!this.#cache) return;
    const relative = Object.fromEntries(Object.entries(files).map(([file, hash]) => [path.relative(this.#root, file), hash]));
    await mkdir(this.#cache, { recursive: true });
    const made = path.join(this.#cache, `.${randomUUID()}`);
    await writeFile(made, JSON.stringify({ types, files: relative }));
    await rename(made, path.join(this.#cache, this.#keyOf(subject)));
  }

  /** @param {Subject} subject */
  #keyOf({ file, name }) {
    const parts = [path.relative(this.#root, file), name, versions(this.#root), import.meta.url];
    return `${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}.json`;
  }
}

/** @param {string} id @param {string} spec @param {string} root @returns {Subject} */
function subjectOf(id, spec, root) {
  const { file, name } = parseSpec(spec);
  return { id, file: path.resolve(root, file), name };
}

function limitMs() {
  const limit = Number(process.env.LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS);
  return limit > 0 ? limit : DEFAULT_LIMIT_MS;
}

/** @param {string} file */
async function hashOf(file) {
  return createHash('sha256').update(await readFile(file)).digest('hex');
}
