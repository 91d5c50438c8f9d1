import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { duplexPair } from './pair.mjs';
import { fileURLToPath } from 'node:url';

import { Decoder, Kind, encode } from '../../src/frames.mjs';
import { Link } from '../../src/link.mjs';
import { Storage } from './storage.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const MAIN = path.join(here, '..', '..', 'src', 'main.mjs');

/** The application the tests load graphs from. */
export const APP = path.join(here, '..', 'app');

/**
 * The server's side of the protocol: it drives a worker and stores what it writes.
 *
 * @typedef {{frames: {event: string, data: any}[], done: any, snapshot: any}} Ended
 */
export class FakeServer {
  storage = new Storage();
  /** @type {any[]} */
  logs = [];
  /** @type {any[]} every storage operation, in order */
  operations = [];
  #socket;
  #decoder = new Decoder();
  #last = 0;
  /** @type {Map<string, (frame: any) => void>} */
  #waiting = new Map();
  /** @type {Map<number, any>} */
  #runs = new Map();
  /** @type {Map<number, Scripted>} */
  #exchanges = new Map();
  /** Refuses an operation when it returns an error. @type {(op: any) => any} */
  refuse = () => undefined;

  /** @param {import('node:stream').Duplex} socket */
  constructor(socket) {
    this.#socket = socket;
    socket.on('data', (piece) => this.#decoder.push(piece).forEach((frame) => this.#handle(frame)));
    socket.on('error', () => {});
  }

  /** @param {number} kind @param {number} stream @param {any} envelope @param {Uint8Array[]} [payload] */
  send(kind, stream, envelope, payload) {
    this.#socket.write(encode(kind, stream, envelope, payload));
  }

  /** @returns {Promise<any>} the HELLO envelope */
  hello() {
    return this.#once('hello');
  }

  /** @param {Record<string, string>} graphs @param {any} [parts] @returns {Promise<any>} */
  load(graphs, parts = {}) {
    this.send(Kind.LOAD, 0, { graphs, parts, slots: 10, delta_max_supersteps: 5000 });
    return this.#once('loaded');
  }

  /**
   * Starts a run. What is not given is as a server would send it for an empty request.
   *
   * @param {any} request
   * @returns {{stream: number, ended: Promise<Ended>, frame: () => Promise<any>, request: any}}
   */
  run(request) {
    const stream = ++this.#last;
    const whole = runRequest(request);
    const state = { frames: /** @type {any[]} */ ([]), read: 0, wake: () => {} };
    this.#runs.set(stream, state);
    const ended = this.#once(`done ${stream}`).then((frame) => ({
      frames: state.frames, done: frame.envelope, snapshot: frame.payload.length ? JSON.parse(frame.payload.toString()) : null,
    }));
    this.send(Kind.RUN, stream, whole);
    return { stream, ended, request: whole, frame: () => nextFrame(state) };
  }

  /** @param {any} request @returns {Promise<Ended>} */
  async finish(request) {
    return this.run(request).ended;
  }

  /** Begins an exchange as for a client's request. @param {any} request */
  request(request) {
    const number = (this.#exchanges.size + 1) * 2;
    const exchange = new Scripted(this, number, {});
    this.#exchanges.set(number, exchange);
    const plain = { method: 'GET', target: '/', headers: [['host', 'test.local']], scheme: 'http', client: '127.0.0.1:5', websocket: false, run: 0, inner: false, user: null };
    this.send(Kind.REQUEST, number, { ...plain, ...request });
    return exchange;
  }

  /** Makes a whole request without a body. @param {any} request @returns {Promise<{response: any, body: Buffer}>} */
  async fetch(request) {
    const exchange = this.request(request);
    exchange.body(Buffer.alloc(0), { end: true });
    return { response: await exchange.response(), body: exchange.head.pass ? Buffer.alloc(0) : await exchange.all() };
  }

  /** The next exchange that the worker begins. @returns {Promise<Scripted>} */
  begun() {
    return this.#once('begun');
  }

  /** @param {any} call @param {Uint8Array[]} [body] @returns {Promise<{envelope: any, result: any}>} */
  async call(call, body) {
    const stream = ++this.#last;
    this.send(Kind.CALL, stream, call, body);
    const { envelope, payload } = await this.#once(`return ${stream}`);
    return { envelope, result: payload.length ? JSON.parse(payload.toString()) : null };
  }

  /** Forgets what was stored, so that long series of runs stay small. */
  forget() {
    if (this.operations.length < 10_000) return;
    this.operations = [];
    this.storage = new Storage();
  }

  /** Sends what is no frame. */
  garbage() {
    this.#socket.write(Buffer.alloc(64, 0xff));
  }

  close() {
    this.#socket.destroy();
  }

  /** @param {string} what @returns {Promise<any>} */
  #once(what) {
    return new Promise((resolve) => this.#waiting.set(what, resolve));
  }

  /** @param {import('../../src/frames.mjs').Frame} frame */
  #handle(frame) {
    const { kind, stream, envelope, payload } = frame;
    if (kind === Kind.HELLO) this.#waiting.get('hello')?.(envelope);
    if (kind === Kind.LOADED) this.#waiting.get('loaded')?.(envelope);
    if (kind === Kind.LOG) this.logs.push(envelope);
    if (kind === Kind.CHUNK) this.#chunk(stream, { event: envelope.event, data: JSON.parse(payload.toString()) });
    if (kind === Kind.DONE) this.#waiting.get(`done ${stream}`)?.(frame);
    if (kind === Kind.RETURN) this.#waiting.get(`return ${stream}`)?.(frame);
    if (kind === Kind.REQUEST) this.#begun(stream, envelope);
    if (kind >= Kind.RESPONSE && kind <= Kind.HANGUP) this.#exchanges.get(stream)?.take(frame);
    if (kind === Kind.ASK || kind === Kind.TELL) this.#store(frame);
  }

  /** @param {number} number @param {any} request */
  #begun(number, request) {
    const exchange = new Scripted(this, number, request);
    this.#exchanges.set(number, exchange);
    this.#waiting.get('begun')?.(exchange);
  }

  /** @param {number} stream @param {any} chunk */
  #chunk(stream, chunk) {
    const state = this.#runs.get(stream);
    state.frames.push(chunk);
    state.wake();
  }

  /** @param {import('../../src/frames.mjs').Frame} frame */
  #store({ kind, stream, envelope, payload }) {
    this.operations.push({ ...envelope, told: kind === Kind.TELL });
    const error = this.refuse(envelope);
    const answer = error ? { envelope: { ok: false, error } } : this.storage.apply(envelope, payload);
    if (kind === Kind.ASK) this.send(Kind.ANSWER, stream, answer.envelope, /** @type {any} */ (answer).payload);
  }
}

/** The server's side of one exchange: it sends what it is told and keeps what comes. */
export class Scripted {
  /** @type {any} the RESPONSE, once it has come */
  head = undefined;
  /** @type {{data: Buffer, envelope: any}[]} */
  parts = [];
  /** @type {any} the HANGUP, once it has come */
  gone = undefined;
  /** Bytes the worker may still send. */
  granted = 256 * 1024;
  /** Bytes this side has been given room for. */
  room = 256 * 1024;
  #wake = () => {};

  /** @param {FakeServer} server @param {number} number @param {any} request */
  constructor(server, number, request) {
    this.server = server;
    this.number = number;
    this.request = request;
  }

  /** @param {import('../../src/frames.mjs').Frame} frame */
  take({ kind, envelope, payload }) {
    if (kind === Kind.RESPONSE) this.head = envelope;
    if (kind === Kind.BODY) this.parts.push({ data: Buffer.from(payload), envelope });
    if (kind === Kind.ROOM) this.room += envelope.bytes;
    if (kind === Kind.HANGUP) this.gone = envelope;
    if (kind === Kind.BODY) this.granted -= payload.byteLength;
    this.#wake();
  }

  /** @param {() => any} ready */
  async until(ready) {
    while (!ready()) await new Promise((/** @type {(_: void) => void} */ resolve) => { this.#wake = resolve; });
  }

  /** @returns {Promise<any>} */
  async response() {
    await this.until(() => this.head || this.gone);
    return this.head;
  }

  /** The whole body, with room for all of it. */
  async all() {
    await this.until(() => {
      this.grant();
      return this.gone || this.parts.at(-1)?.envelope.end;
    });
    return Buffer.concat(this.parts.map(({ data }) => data));
  }

  /** Gives back the room of what has come. */
  grant() {
    const bytes = 256 * 1024 - this.granted;
    if (bytes === 0) return;
    this.granted += bytes;
    this.server.send(Kind.ROOM, this.number, { bytes });
  }

  /** @param {Uint8Array | string} data @param {any} [envelope] */
  body(data, envelope = {}) {
    this.server.send(Kind.BODY, this.number, envelope, [Buffer.from(data)]);
  }

  /** @param {any} envelope */
  respond(envelope) {
    this.server.send(Kind.RESPONSE, this.number, envelope);
  }

  /** @param {any} [envelope] */
  hangUp(envelope = {}) {
    this.server.send(Kind.HANGUP, this.number, envelope);
  }
}

/** @param {any} state @returns {Promise<any>} */
async function nextFrame(state) {
  while (state.read >= state.frames.length) await new Promise((resolve) => { state.wake = resolve; });
  return state.frames[state.read++];
}

/** @param {any} request */
export function runRequest({ thread_id = randomUUID(), run_id = randomUUID(), config = {}, ...rest }) {
  const ids = { run_id, thread_id, graph_id: rest.graph_id, assistant_id: 'a1' };
  return {
    ...ids, attempt: 1, epoch: 1, temporary: false, resume: false, input: null, command: null, context: null, stream_mode: ['values'],
    subgraphs: false, interrupt_before: null, interrupt_after: null, durability: null, strict_resume: false, credit: 1e6, ...rest,
    config: { ...config, configurable: { ...ids, ...config.configurable }, metadata: { assistant_id: 'a1', ...config.metadata } },
  };
}

/**
 * Starts the worker program as the server does, and says hello.
 *
 * @param {{cwd?: string, node?: string[], env?: Record<string, string>}} [options]
 */
export async function startWorker({ cwd = APP, node = [], env = {} } = {}) {
  const child = spawn(process.execPath, [...node, MAIN], { cwd, stdio: ['ignore', 'pipe', 'pipe', 'pipe'], env: { PATH: process.env.PATH, ...env, SLIPWAY_WORKER_FD: '3' } });
  let output = '';
  child.stdout?.on('data', (text) => { output += text; });
  child.stderr?.on('data', (text) => { output += text; });
  const server = new FakeServer(/** @type {any} */ (child.stdio[3]));
  const exited = new Promise((resolve) => child.on('exit', (code, signal) => resolve({ code, signal })));
  const died = exited.then((how) => { throw new Error(`the worker ended before its hello: ${JSON.stringify(how)}\n${output}`); });
  const hello = await Promise.race([server.hello(), died]);
  died.catch(() => {});
  return { server, child, hello, exited, output: () => output, stop: async () => { server.close(); await exited; } };
}

/** A link in this process whose other end is a fake server. */
export function connect() {
  const [mine, theirs] = duplexPair();
  return { link: new Link(mine), server: new FakeServer(theirs) };
}
