import { libraryConfig, runMetadata, storedMetadata } from './config.mjs';
import { failureOf, readable, traceOf } from './failure.mjs';
import { Kind } from './frames.mjs';
import { toJSON } from './json.mjs';
import { StorageError } from './link.mjs';
import { instantiate } from './loader.mjs';
import { Modes, libraryModes } from './modes.mjs';
import { finalSnapshot, threadState } from './snapshot.mjs';

/**
 * @typedef {import('./worker.mjs').Tools} Tools
 * @typedef {import('./saver.mjs').Scope} Scope
 * @typedef {{status: 'success' | 'error' | 'cancelled', error?: import('./failure.mjs').Failure, retriable: boolean}} Done
 */

/** A resume for an interrupt that nobody waits for (reference 4.1, strict_resume). */
class UnknownInterruptError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = 'UnknownInterruptError';
  }
}

/** One run, from its RUN frame to its DONE frame. */
export class Run {
  #tools;
  #stream;
  #request;
  #abort = new AbortController();
  #credit;
  /** While the sender waits for credit: ends when there is some. @type {Promise<void> | undefined} */
  #starved;
  /** Ends that wait. @type {(() => void) | undefined} */
  #refilled;
  /** The action of the cancel, once there is one. @type {string | undefined} */
  #cancelled;
  /** The last checkpoint of the root graph. @type {import('./saver.mjs').Put | undefined} */
  #put;
  #wrote = false;
  #modes;
  /** @type {Scope} */
  #scope;
  /** @type {any} */
  #config;
  /** The graph of this run, once it exists. @type {any} */
  #graph;

  /** @param {Tools} tools @param {number} stream @param {any} request the RUN envelope */
  constructor(tools, stream, request) {
    this.#tools = tools;
    this.#stream = stream;
    this.#request = request;
    this.#credit = request.credit ?? 0;
    this.#modes = new Modes({ asked: request.stream_mode ?? [], subgraphs: request.subgraphs === true }, (event, json) => this.#send(event, json));
    this.#config = configOf(request, tools.version, this.#abort.signal);
    this.#scope = this.#newScope();
  }

  /** Lets so many more chunks go. @param {number} chunks */
  refill(chunks) {
    this.#credit += chunks;
    this.#refilled?.();
  }

  /** Stops the run; it still flushes and sends DONE. @param {string} action @param {string} [reason] */
  cancel(action, reason) {
    this.#cancelled ??= action;
    this.#abort.abort(new DOMException(reason ?? 'the run was cancelled', 'AbortError'));
    this.#tools.exchanges.endRun(this.#stream);
    this.#refilled?.();
  }

  /** Executes the run. It never rejects: whatever happens is in its DONE frame. */
  async execute() {
    const done = await this.#attempt();
    const snapshot = await this.#snapshot(done);
    this.#scope.ended = true;
    this.#tools.exchanges.endRun(this.#stream);
    this.#tools.link.send(Kind.DONE, this.#stream, done, snapshot);
  }

  /** @returns {Promise<Done>} */
  async #attempt() {
    try {
      await this.#play();
      await this.#modes.end(this.#modes.outcome.interrupted ? 'interrupted' : 'completed');
      return { status: 'success', retriable: false };
    } catch (error) {
      return this.#failed(error);
    }
  }

  async #play() {
    const access = /** @type {const} */ ('threads.create_run');
    const made = await instantiate(this.#tools.graph(this.#request.graph_id), this.#config, { access, context: this.#request.context });
    this.#graph = this.#tools.bind(made, this.#request.graph_id, this.#request.temporary ? undefined : this.#scope, this.#stream);
    if (this.#request.stream_mode?.length > 0) slowSteps(this.#graph, () => this.#starved);
    if (this.#request.strict_resume) await this.#checkResume();
    this.#abort.signal.throwIfAborted();
    if (this.#request.stream_mode?.includes('events')) await this.#playEvents();
    else await this.#playStream();
  }

  async #playStream() {
    const deep = this.#modes.deep;
    for await (const chunk of await this.#graph.stream(this.#input(), this.#options())) {
      const sending = this.#modes.handle(chunkOf(chunk, deep));
      if (sending) await sending; // Most chunks go at once, and a promise for each would cost more than the chunk.
    }
  }

  /** LangChain's events are dearer than the stream; they carry it along as the chunks of the root run. */
  async #playEvents() {
    const deep = this.#modes.deep;
    const { run_id } = this.#request;
    for await (const event of this.#graph.streamEvents(this.#input(), { ...this.#options(), version: 'v2' })) {
      const isChunk = event.event === 'on_chain_stream' && event.run_id === run_id;
      if (isChunk) await this.#modes.handle(chunkOf(event.data.chunk, deep));
      else if (!event.tags?.includes('langsmith:hidden')) await this.#modes.event(event);
    }
  }

  #options() {
    const { interrupt_before, interrupt_after, durability, context, stream_mode } = this.#request;
    return {
      ...this.#config,
      ...(stream_mode?.some(isOfCallbacks) ? { callbacks: [heldBack(() => this.#starved)] } : {}),
      ...(context ? { context } : {}),
      ...(interrupt_before ? { interruptBefore: interrupt_before } : {}),
      ...(interrupt_after ? { interruptAfter: interrupt_after } : {}),
      ...(durability ? { durability } : {}),
      streamMode: libraryModes(this.#request.stream_mode ?? []),
      subgraphs: this.#modes.deep,
    };
  }

  #input() {
    const { input, command, resume } = this.#request;
    if (resume) return null;
    return command ? commandOf(command, this.#tools.library.langgraph) : input ?? null;
  }

  /** @param {unknown} thrown @returns {Promise<Done>} */
  async #failed(thrown) {
    const error = readable(thrown);
    if (this.#abort.signal.aborted) {
      await this.#modes.end('interrupted');
      return { status: 'cancelled', retriable: false };
    }
    const failure = failureOf(error);
    this.#say(error, failure.message);
    await this.#modes.end('failed', failure);
    return { status: 'error', error: failure, retriable: isRetriable(error) };
  }

  /** @param {unknown} error @param {string} message */
  #say(error, message) {
    const { run_id, thread_id } = this.#request;
    this.#tools.log.error(`run failed: ${message}\n${traceOf(error)}`, { run_id, thread_id });
  }

  /** @returns {Scope} */
  #newScope() {
    return {
      run: this.#stream,
      runId: this.#request.run_id,
      wait: this.#request.durability === 'sync',
      extra: storedMetadata(this.#config.metadata),
      freshThread: this.#request.fresh === true ? this.#request.thread_id : undefined,
      onPut: (put) => this.#notePut(put),
      onWrites: (taskId, writes) => this.#noteWrites(taskId, writes),
      onStale: () => this.cancel('fenced', 'the run belongs to another worker'),
    };
  }

  /** @param {import('./saver.mjs').Put} put */
  #notePut(put) {
    this.#wrote = true;
    this.#scope.freshThread = undefined;
    if (put.ns === '') this.#put = put;
  }

  /** @param {string} taskId @param {[string, any][]} writes */
  #noteWrites(taskId, writes) {
    this.#wrote = true;
    this.#scope.freshThread = undefined;
    const failed = writes.find(([channel]) => channel === '__error__');
    if (failed) this.#modes.failures.set(taskId, failureOf(failed[1]));
  }

  /** Sends one frame of the stream, at once when there is credit for it. @param {string} event @param {string} json @returns {Promise<void> | undefined} */
  #send(event, json) {
    if (this.#credit <= 0) return this.#sendLater(event, json);
    this.#credit--;
    this.#tools.link.send(Kind.CHUNK, this.#stream, event === 'values' ? '{"event":"values"}' : `{"event":${JSON.stringify(event)}}`, json);
    return undefined;
  }

  /** Waits for credit; a cancelled run has nobody to send to. @param {string} event @param {string} json */
  async #sendLater(event, json) {
    while (this.#credit <= 0) {
      if (this.#abort.signal.aborted) return;
      this.#starved = new Promise((resolve) => { this.#refilled = resolve; });
      await this.#starved;
      this.#starved = undefined;
    }
    this.#send(event, json);
  }

  /** @param {Done} done @returns {Promise<string>} JSON, empty when the run left no checkpoint */
  async #snapshot(done) {
    const { outcome } = this.#modes;
    const values = outcome.valuesJSON();
    if (this.#request.temporary) return `{"values":${values ?? '{}'},"interrupts":${toJSON(outcome.interrupts)}}`;
    // A retry may find that the attempt before it has done everything but say so; another's checkpointer does not say at all.
    const untold = this.#request.resume || this.#tools.parts.checkpointer !== undefined;
    if (!(this.#wrote || untold) || this.#cancelled === 'fenced') return '';
    if (done.status === 'success' && this.#put && values !== undefined && !this.#mayWait()) return finalSnapshot(values, this.#put);
    return this.#askGraph();
  }

  /** Whether something may be left to do: an interrupt came, or the graph or the request has breakpoints. */
  #mayWait() {
    const { interrupt_before, interrupt_after } = this.#request;
    const breakpoints = [interrupt_before, interrupt_after, this.#graph.interruptBefore, this.#graph.interruptAfter];
    return this.#modes.outcome.interrupted || breakpoints.some((at) => at?.length > 0);
  }

  async #askGraph() {
    try {
      const { thread_id } = this.#request;
      return toJSON(threadState(await this.#graph.getState({ configurable: { thread_id, checkpoint_ns: '' } })));
    } catch (error) {
      this.#tools.log.warn(`cannot make the snapshot of the run: ${failureOf(error).message}`, { run_id: this.#request.run_id });
      return '';
    }
  }

  /**
   * The library does not know strict_resume yet. As in Python, a single value is fine where nothing waits: it goes on from
   * a breakpoint. A replay of an older checkpoint may meet interrupts again that look answered, and is not checked.
   */
  async #checkResume() {
    const resume = this.#request.command?.resume;
    if (resume === undefined || resume === null || await this.#replays()) return;
    const waiting = await this.#waiting();
    const names = isResumeMap(resume) ? Object.keys(resume) : undefined;
    const pending = waiting.size > 0 ? `waiting are ${[...waiting].join(', ')}` : 'none is waiting';
    if (names === undefined && waiting.size > 1) throw new UnknownInterruptError(`several interrupts are waiting, so each must be answered by its id; ${pending}`);
    if (names?.length === 0) throw new UnknownInterruptError(`the resume map names no interrupt; ${pending}`);
    const unknown = names?.filter((id) => !waiting.has(id)) ?? [];
    if (unknown.length > 0) throw new UnknownInterruptError(`no interrupt "${unknown.join('", "')}" is waiting in this thread; ${pending}`);
  }

  /** Whether the run begins at a checkpoint that is not its thread's last one. */
  async #replays() {
    const { thread_id, checkpoint_id } = this.#config.configurable;
    if (!checkpoint_id) return false;
    const last = await this.#graph.checkpointer?.getTuple({ configurable: { thread_id, checkpoint_ns: '' } });
    return last !== undefined && last.checkpoint.id !== checkpoint_id;
  }

  /** @returns {Promise<Set<string>>} the ids of the interrupts that wait */
  async #waiting() {
    const tuple = await this.#graph.checkpointer?.getTuple(this.#config);
    const writes = (tuple?.pendingWrites ?? []).filter((/** @type {any} */ write) => write[1] === '__interrupt__');
    return new Set(writes.flatMap((/** @type {any} */ write) => write[2]).map((/** @type {any} */ interrupt) => interrupt.id));
  }
}

/** @param {any} request @param {string | null} version @param {AbortSignal} signal */
function configOf(request, version, signal) {
  const config = libraryConfig(request.config);
  if (request.resume) delete config.configurable.checkpoint_id;
  config.metadata = runMetadata(request, version);
  config.configurable.thread_id ??= request.thread_id;
  config.runId = request.run_id;
  config.signal = signal;
  return config;
}

/** @param {any} chunk @param {boolean} deep @returns {import('./modes.mjs').Chunk} */
function chunkOf(chunk, deep) {
  const [namespace, mode, payload] = deep ? chunk : [[], ...chunk];
  return { namespace, mode, payload };
}

/**
 * @param {any} command `{update, resume, goto}` (reference 4.1)
 * @param {any} langgraph
 */
export function commandOf({ update, resume, goto }, langgraph) {
  const send = (/** @type {any} */ to) => (typeof to === 'string' ? to : new langgraph.Send(to.node, to.input ?? null));
  return new langgraph.Command({
    ...(update === undefined || update === null ? {} : { update }),
    ...(resume === undefined || resume === null ? {} : { resume }),
    ...(goto === undefined || goto === null ? {} : { goto: Array.isArray(goto) ? goto.map(send) : send(goto) }),
  });
}

/** Whether the library makes a mode's chunks in handlers of callbacks. @param {string} mode */
function isOfCallbacks(mode) {
  return ['messages', 'messages-tuple', 'events', 'tools'].includes(mode);
}

/**
 * A handler that holds a graph back while the stream waits for credit: whoever starts a node, a model or a tool, or passes
 * on a token, waits for it. It doubles the work of a small step, so it is for modes that use handlers anyway.
 *
 * @param {() => Promise<void> | undefined} starved what to wait for
 */
function heldBack(starved) {
  const wait = async () => starved();
  return { name: 'slipway_brake', awaitHandlers: true, handleChainStart: wait, handleChatModelStart: wait, handleLLMStart: wait, handleToolStart: wait, handleLLMNewToken: wait };
}

/**
 * Lets each step of a run's own copy of a graph wait while the stream waits for credit. The library has no name for it that
 * is meant for others; where it has another one, the graph is not held back.
 *
 * @param {any} graph
 * @param {() => Promise<void> | undefined} starved what to wait for
 */
function slowSteps(graph, starved) {
  const { _runLoop: play } = graph;
  if (typeof play !== 'function') return;
  graph._runLoop = (/** @type {any} */ params) => {
    const { loop } = params;
    const { tick } = loop;
    loop.tick = async (/** @type {any[]} */ ...args) => {
      await starved();
      return tick.apply(loop, args);
    };
    return play.call(graph, params);
  };
}

/** A map of resumes is keyed by interrupt ids, which are hashes. @param {any} resume */
function isResumeMap(resume) {
  if (typeof resume !== 'object' || resume === null || Array.isArray(resume)) return false;
  return Object.keys(resume).every((key) => /^[0-9a-f]{32}$/.test(key));
}

/** Only storage and the link fail for reasons that trying again mends. @param {unknown} error */
function isRetriable(error) {
  return error instanceof StorageError && !['stale', 'invalid', 'not_found'].includes(error.code);
}
