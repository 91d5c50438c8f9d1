import path from 'node:path';

import { importLibrary, versions } from './library.mjs';
import { answer } from './calls.mjs';
import { CURRENT } from './context.mjs';
import { Describer } from './describe.mjs';
import { Exchanges } from './exchange.mjs';
import { failureOf, traceOf } from './failure.mjs';
import { Kind } from './frames.mjs';
import { LoadError, load, parseSpec, refusal, warnings } from './loader.mjs';
import { Log } from './log.mjs';
import { install } from './loopback.mjs';
import { Parts } from './parts.mjs';
import { Run } from './runner.mjs';
import { saverClass } from './saver.mjs';
import { cacheClass, storeClass } from './store.mjs';
import { Findings } from './types.mjs';

/**
 * @typedef {import('./frames.mjs').Frame} Frame
 * @typedef {import('./link.mjs').Link} Link
 * @typedef {import('./library.mjs').Library} Library
 * @typedef {import('./saver.mjs').Scope} Scope
 *
 * What runs and calls work with.
 *
 * @typedef {object} Tools
 * @property {Link} link
 * @property {Log} log
 * @property {Library} library
 * @property {Parts} parts
 * @property {Exchanges} exchanges
 * @property {Describer} describer
 * @property {string | null} version of langgraph
 * @property {(id: string) => import('./loader.mjs').Loaded} graph finds a loaded graph, or throws
 * @property {(graph: any, graphId: string, scope: Scope | undefined, run: number) => any} bind makes a copy with the server's storage; without scope, without checkpointer
 */

/** The protocol this worker speaks. */
const PROTOCOL = 1;

/** A worker: it loads graphs once, then runs them and answers questions about them, many at a time. */
export class Worker {
  #link;
  #log;
  #root;
  #exchanges;
  #parts;
  #findings;
  /** @type {Map<string, import('./loader.mjs').Loaded>} */
  #graphs = new Map();
  /** @type {Map<number, Run>} */
  #runs = new Map();
  /** @type {Map<number, AbortController>} */
  #calls = new Map();
  /** @type {Tools | undefined} */
  #tools;

  /** @param {Link} link @param {string} root the application's directory */
  constructor(link, root) {
    this.#link = link;
    this.#log = new Log(link);
    this.#root = root;
    this.#exchanges = new Exchanges(link);
    this.#parts = new Parts(root, this.#exchanges, this.#log);
    this.#findings = new Findings(root, this.#log);
    link.onFrame = (frame) => this.#handle(frame);
  }

  /** Introduces the worker to its server. */
  hello() {
    const found = { node: process.versions.node, ...versions(this.#root) };
    this.#link.send(Kind.HELLO, 0, { protocol: PROTOCOL, language: 'node', pid: process.pid, versions: found });
  }

  /** What escaped every promise of the user's code. It ends no run: nobody knows which one it was. @param {unknown} error */
  escaped(error) {
    // What a cancel aborts is often a promise that nobody waits for any more; the run's own end tells of the cancel.
    const level = isAbort(error) ? 'debug' : 'error';
    this.#log.say(level, `an error escaped from the graph's code: ${failureOf(error).message}\n${traceOf(error)}`);
  }

  /** Ends what the application's parts have opened. */
  close() {
    return this.#parts.close();
  }

  /** @param {Frame} frame */
  #handle(frame) {
    const { kind, stream, envelope } = frame;
    switch (kind) {
      case Kind.LOAD: return void this.#load(envelope);
      case Kind.RUN: return void this.#run(stream, envelope);
      case Kind.CANCEL: return this.#runs.get(stream)?.cancel(envelope.action, envelope.reason);
      case Kind.CREDIT: return this.#runs.get(stream)?.refill(envelope.chunks);
      case Kind.CALL: return void this.#call(frame);
      case Kind.ABORT: return this.#calls.get(stream)?.abort();
      case Kind.REQUEST: return void this.#request(frame);
      case Kind.RESPONSE:
      case Kind.BODY:
      case Kind.ROOM:
      case Kind.HANGUP: return this.#exchanges.take(frame);
      default: // A newer server may say more.
    }
  }

  /** @param {any} request */
  async #load({ graphs, parts, delta_max_supersteps }) {
    if (delta_max_supersteps) process.env.LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT ??= String(delta_max_supersteps);
    install(this.#exchanges);
    const specs = /** @type {[string, string][]} */ (Object.entries(graphs));
    const broken = await this.#prepare(specs);
    const said = await this.#parts.load(parts);
    const outcomes = await Promise.all(specs.map(async ([id, spec]) => [id, broken ?? await this.#loadOne(id, spec)]));
    const notes = [...this.#graphs].flatMap(([id, loaded]) => warnings(id, loaded));
    this.#link.send(Kind.LOADED, 0, { graphs: Object.fromEntries(outcomes), parts: said, warnings: notes });
    this.#findings.start(specs.filter(([id]) => this.#graphs.has(id)));
  }

  /** Imports the library. @param {[string, string][]} specs @returns {Promise<import('./loader.mjs').Outcome | undefined>} why nothing can be loaded */
  async #prepare(specs) {
    try {
      const besideGraphs = specs.map(([, spec]) => path.dirname(path.resolve(this.#root, parseSpec(spec).file)));
      const library = await importLibrary([this.#root, ...besideGraphs]);
      const describer = new Describer(library, (id) => this.#findings.of(id));
      const rest = { log: this.#log, graphs: this.#graphs, parts: this.#parts, exchanges: this.#exchanges, describer };
      this.#tools = toolsOver(library, this.#link, rest);
      return undefined;
    } catch (error) {
      return refusal(error);
    }
  }

  /** @param {string} id @param {string} spec @returns {Promise<import('./loader.mjs').Outcome>} */
  async #loadOne(id, spec) {
    try {
      const loaded = await load(spec, this.#root);
      this.#graphs.set(id, loaded);
      return { ok: true, factory: 'factory' in loaded };
    } catch (error) {
      return refusal(error);
    }
  }

  /** @param {number} stream @param {any} request */
  async #run(stream, request) {
    if (!this.#tools) return this.#refuse(stream);
    const run = new Run(this.#tools, stream, request);
    this.#runs.set(stream, run);
    try {
      await CURRENT.run({ run: stream }, () => run.execute());
    } catch (error) {
      this.#link.send(Kind.DONE, stream, { status: 'error', error: failureOf(error), retriable: false });
    } finally {
      this.#runs.delete(stream);
    }
  }

  /** @param {number} stream */
  #refuse(stream) {
    const error = { error: 'LoadError', message: 'no graph has been loaded' };
    this.#link.send(Kind.DONE, stream, { status: 'error', error, retriable: false });
  }

  /** @param {Frame} frame */
  async #call({ stream, envelope, payload }) {
    const controller = new AbortController();
    this.#calls.set(stream, controller);
    await answer(this.#tools ?? this.#withoutLibrary(), stream, envelope, payload, controller.signal);
    this.#calls.delete(stream);
  }

  /** What answers calls where only parts of the application have been loaded. @returns {Tools} */
  #withoutLibrary() {
    const graph = (/** @type {string} */ id) => found(this.#graphs, id);
    return /** @type {any} */ ({ link: this.#link, log: this.#log, parts: this.#parts, exchanges: this.#exchanges, graph });
  }

  /** A request of the server is for the application's own HTTP app. @param {Frame} frame */
  async #request(frame) {
    const exchange = this.#exchanges.accept(frame);
    const { app } = this.#parts;
    if (app) await app.serve(exchange);
    else exchange.respond({ pass: true });
  }
}

/**
 * @param {Library} library
 * @param {Link} link
 * @param {{log: Log, graphs: Map<string, import('./loader.mjs').Loaded>, parts: Parts, exchanges: Exchanges, describer: Describer}} rest
 * @returns {Tools}
 */
export function toolsOver(library, link, { graphs, ...rest }) {
  const Saver = saverClass(library.checkpoint);
  const Store = storeClass(library.checkpoint);
  const Cache = cacheClass(library.checkpoint);
  const { parts } = rest;
  const kept = once(() => {
    const { serde: plain } = new Saver(link);
    const serde = parts.encryption?.serde(plain) ?? plain;
    return serde;
  });
  return {
    ...rest,
    link,
    library,
    version: library.version,
    graph: (id) => found(graphs, id),
    bind: (graph, graphId, scope, run) => {
      const serde = kept();
      const checkpointer = scope && (parts.checkpointer ?? new Saver(link, scope, serde));
      return copyOf(graph, checkpointer, parts.store ?? new Store(link, run), new Cache(link, serde, graphId));
    },
  };
}

/** @template T @param {() => T} make @returns {() => T} */
function once(make) {
  /** @type {{made: T} | undefined} */
  let known;
  return () => (known ??= { made: make() }).made;
}

/**
 * A copy of a graph for one run: everything is the original's but its storage. The original is never changed, so that
 * runs at the same time do not meet.
 *
 * @param {any} graph
 * @param {any} checkpointer
 * @param {any} store
 * @param {any} cache
 */
function copyOf(graph, checkpointer, store, cache) {
  return Object.assign(Object.create(Object.getPrototypeOf(graph)), graph, { checkpointer, store, cache });
}

/** @param {Map<string, import('./loader.mjs').Loaded>} graphs @param {string} id */
function found(graphs, id) {
  const loaded = graphs.get(id);
  if (!loaded) throw new LoadError(`the graph "${id}" has not been loaded by this worker`);
  return loaded;
}

/** Whether an error comes from an aborted signal. @param {any} error */
function isAbort(error) {
  return error?.name === 'AbortError' || error?.cause?.name === 'AbortError';
}
