import { checkpointOf, shownConfig } from './config.mjs';
import { toJSON } from './json.mjs';
import { Lifecycle } from './lifecycle.mjs';
import { MessageStream, isHidden } from './messages.mjs';

/**
 * Maps what the library streams to the frames of a run's stream (reference 10.1).
 *
 * @typedef {{namespace: string[], mode: string, payload: any}} Chunk
 * @typedef {import('./failure.mjs').Failure} Failure
 */

/** The library's modes that a client's mode needs. @type {Record<string, string[]>} */
const NEEDS = {
  values: [],
  updates: ['updates'],
  messages: ['messages'],
  'messages-tuple': ['messages'],
  custom: ['custom'],
  debug: ['debug'],
  tasks: ['tasks'],
  checkpoints: ['checkpoints'],
  events: [],
  tools: ['tools'],
  lifecycle: ['tasks'],
};

/** Modes whose namespace is that of the node, not of the graph the node belongs to. */
const OF_A_NODE = new Set(['messages', 'tools']);

/** Modes that the library streams of subgraphs even when nobody asked for subgraphs. */
const ALWAYS_DEEP = new Set(['messages', 'tools', 'custom']);

/** The library's modes for a client's: always `values`, which the snapshot needs. @param {string[]} asked @returns {string[]} */
export function libraryModes(asked) {
  return [...new Set(['values', ...asked.flatMap((mode) => NEEDS[mode] ?? [])])];
}

/** What a stream has told about the end of a run. */
export class Outcome {
  /** The last state of the root graph. @type {any} */
  values = undefined;
  /** Its JSON, when it has been made already. @type {string | undefined} */
  json = undefined;
  /** @type {any[]} */
  interrupts = [];
  interrupted = false;

  /** @returns {string | undefined} JSON */
  valuesJSON() {
    return this.values === undefined ? undefined : (this.json ?? toJSON(this.values));
  }
}

/** The stream of one run. */
export class Modes {
  outcome = new Outcome();
  /** Failures of tasks by task id: the library does not repeat them in mode `tasks`. @type {Map<string, Failure>} */
  failures = new Map();
  #asked;
  #subgraphs;
  #send;
  #messages = new MessageStream();
  #lifecycle;

  /**
   * @param {{asked: string[], subgraphs: boolean}} wishes
   * @param {(event: string, json: string) => Promise<void> | undefined} send
   */
  constructor({ asked, subgraphs }, send) {
    this.#asked = new Set(asked);
    this.#subgraphs = subgraphs;
    this.#send = send;
    this.#lifecycle = new Lifecycle(async (ns, payload) => this.#send(['lifecycle', ...ns].join('|'), toJSON(payload)));
  }

  /** Whether the library must stream subgraphs. */
  get deep() {
    return this.#subgraphs || this.#asked.has('lifecycle');
  }

  /** @param {Chunk} chunk @returns {Promise<void> | undefined} nothing when the chunk has been sent already */
  handle({ namespace, mode, payload }) {
    const ns = graphNamespace(namespace, mode);
    if (this.#asked.has('lifecycle')) return this.#follow(ns, mode, payload).then(() => this.#pass(ns, mode, payload));
    return this.#pass(ns, mode, payload);
  }

  /** @param {string[]} ns @param {string} mode @param {any} payload @returns {Promise<void> | undefined} */
  #pass(ns, mode, payload) {
    if (ns.length > 0 && !this.#subgraphs && !ALWAYS_DEEP.has(mode)) return this.#noteInterrupt(ns, mode, payload);
    if (mode === 'values') return this.#values(ns, payload);
    if (mode === 'messages') return this.#message(ns, payload);
    if (!this.#asked.has(mode)) return undefined;
    return this.#emit(mode, ns, this.#shape(mode, payload));
  }

  /** An event of LangChain's, for mode `events`. @param {any} event */
  async event(event) {
    await this.#emit('events', [], event);
  }

  /** @param {'completed' | 'failed' | 'interrupted'} event @param {Failure} [error] */
  async end(event, error) {
    await this.#lifecycle.runEnded(event, error);
  }

  /** @param {string[]} ns @param {string} mode @param {any} payload */
  async #follow(ns, mode, payload) {
    await this.#lifecycle.saw(ns);
    if (mode === 'tasks' && 'result' in payload) await this.#lifecycle.taskEnded(this.#withFailure(payload));
  }

  /** @param {string[]} ns @param {any} payload @returns {Promise<void> | undefined} */
  #values(ns, payload) {
    this.#noteInterrupt(ns, 'values', payload);
    const isInterrupt = interruptsOf(payload) !== undefined;
    const isRoot = ns.length === 0;
    if (isRoot && !isInterrupt) {
      this.outcome.values = payload;
    }
    const json = this.#asked.has('values') ? toJSON(payload) : undefined;
    if (isRoot && !isInterrupt) this.outcome.json = json;
    const sending = json === undefined ? undefined : this.#send(this.#name('values', ns), json);
    if (isInterrupt || !this.#asked.has('messages')) return sending;
    return Promise.resolve(sending).then(() => this.#messages.values(payload, this.#emitter(ns)));
  }

  /** @param {string[]} ns @param {[any, any]} pair */
  async #message(ns, [message, metadata]) {
    if (isHidden(metadata)) return;
    if (this.#asked.has('messages')) await this.#messages.chunk(message, metadata, this.#emitter(ns));
    if (this.#asked.has('messages-tuple')) await this.#emit('messages', ns, [message, metadata]);
  }

  /** @param {string[]} ns @param {string} mode @param {any} payload */
  #noteInterrupt(ns, mode, payload) {
    const interrupts = mode === 'values' ? interruptsOf(payload) : undefined;
    if (interrupts === undefined) return undefined;
    this.outcome.interrupted = true;
    if (ns.length === 0) this.outcome.interrupts.push(...interrupts);
    return undefined;
  }

  /** @param {string} mode @param {any} payload */
  #shape(mode, payload) {
    if (mode === 'checkpoints') return checkpointPayload(payload);
    if (mode === 'tasks') return this.#withFailure(payload);
    if (mode !== 'debug') return payload;
    const shaped = payload.type === 'checkpoint' ? checkpointPayload(payload.payload) : this.#withFailure(payload.payload);
    return { ...payload, payload: shaped };
  }

  /** @param {any} task */
  #withFailure(task) {
    const error = 'result' in task ? this.failures.get(task.id) : undefined;
    return error ? { ...task, error } : task;
  }

  /** @param {string[]} ns */
  #emitter(ns) {
    return async (/** @type {string} */ event, /** @type {any} */ payload) => this.#emit(event, ns, payload);
  }

  /** @param {string} event @param {string[]} ns @param {any} payload */
  #emit(event, ns, payload) {
    return this.#send(this.#name(event, ns), toJSON(payload));
  }

  /** @param {string} event @param {string[]} ns */
  #name(event, ns) {
    return this.#subgraphs && ns.length > 0 ? `${event}|${ns.join('|')}` : event;
  }
}

/** @param {string[]} namespace @param {string} mode @returns {string[]} empty for the root graph */
function graphNamespace(namespace, mode) {
  const parts = (namespace ?? []).filter((part) => part !== '');
  return OF_A_NODE.has(mode) ? parts.slice(0, -1) : parts;
}

/** @param {any} payload @returns {any[] | undefined} */
function interruptsOf(payload) {
  const found = typeof payload === 'object' && payload !== null && Object.keys(payload).length === 1 ? payload.__interrupt__ : undefined;
  return Array.isArray(found) ? found : undefined;
}

/** @param {any} payload */
function checkpointPayload({ config, parentConfig, tasks, ...rest }) {
  const parent = parentConfig ? { parent_config: shownConfig(parentConfig) } : {};
  return {
    config: shownConfig(config),
    ...rest,
    tasks: (tasks ?? []).map(taskPayload),
    checkpoint: checkpointOf(config),
    parent_checkpoint: checkpointOf(parentConfig),
    ...parent,
  };
}

/** The state of a task in a subgraph is only its address. @param {any} task */
function taskPayload({ state, ...task }) {
  return state?.configurable ? { ...task, checkpoint: checkpointOf(state) } : { ...task, ...(state ? { state } : {}) };
}
