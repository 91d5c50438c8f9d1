import { Kind } from './frames.mjs';

/**
 * HTTP over the link: requests, responses, bodies and WebSocket messages of both sides (protocol, "HTTP: exchanges").
 *
 * @typedef {{data: Buffer, end: boolean, text: boolean}} Part one BODY
 */

/** How many bytes of BODY a side may send before it is given more room. */
export const WINDOW = 256 * 1024;

const PIECE = 64 * 1024;

/** The other side has hung up. */
export class Gone extends Error {
  /** @param {number} code @param {string} reason */
  constructor(code = 1006, reason = '') {
    super(reason || 'the exchange was aborted');
    this.name = 'Gone';
    this.code = code;
    this.reason = reason;
  }
}

/** One HTTP exchange or WebSocket. */
export class Exchange {
  #all;
  #room = WINDOW;
  /** @type {Part[]} */
  #parts = [];
  /** @type {any} */
  #response = undefined;
  #sent = false;
  #received = false;
  /** Wakes whoever waits for frames. @type {(() => void)[]} */
  #waiting = [];
  /** Why it is over, once the other side or this one has hung up. @type {Gone | undefined} */
  gone = undefined;
  /** Whether RESPONSE has been sent. */
  responded = false;

  /** @param {Exchanges} all @param {number} number @param {any} request the REQUEST envelope */
  constructor(all, number, request) {
    this.#all = all;
    this.number = number;
    this.request = request;
    this.websocket = request.websocket === true;
  }

  /** Waits for the other side's RESPONSE; throws Gone when it hangs up instead. @returns {Promise<any>} */
  async response() {
    await this.#until(() => this.#response !== undefined);
    return this.#response;
  }

  /** Waits for the next BODY and gives its sender room for more; throws Gone after a HANGUP. @returns {Promise<Part>} */
  async receive() {
    await this.#until(() => this.#parts.length > 0);
    const part = /** @type {Part} */ (this.#parts.shift());
    if (part.data.byteLength > 0 && !this.gone) this.#send(Kind.ROOM, { bytes: part.data.byteLength });
    if (part.end) this.#end({ received: true });
    return part;
  }

  /** Waits for the HANGUP of the other side, or the end of the exchange. */
  async hungUp() {
    while (!this.gone && this.#open()) await this.#turn();
    return this.gone;
  }

  /** The bytes of the body as a stream that pulls as it is read. */
  body() {
    return new ReadableStream({
      pull: (controller) => this.#pull(controller),
      cancel: () => { if (this.number % 2 === 1) this.hangUp(undefined, 'the caller has gone'); },
    }, { highWaterMark: 0 });
  }

  /** @param {ReadableStreamDefaultController} controller */
  async #pull(controller) {
    while (!this.#received) {
      const part = await this.receive();
      if (part.data.byteLength === 0) continue;
      controller.enqueue(new Uint8Array(part.data));
      return;
    }
    controller.close();
  }

  /** Sends RESPONSE. @param {any} envelope */
  respond(envelope) {
    this.responded = true;
    this.#send(Kind.RESPONSE, envelope);
    if (envelope.pass) this.drop();
  }

  /** Sends bytes of the body as the other side has room for them. @param {Uint8Array} data @param {boolean} [end] */
  async send(data, end = false) {
    for (let at = 0; at < data.byteLength; at += PIECE) {
      const piece = data.subarray(at, at + PIECE);
      await this.#takeRoom(piece.byteLength);
      this.#send(Kind.BODY, end && at + PIECE >= data.byteLength ? { end: true } : {}, piece);
    }
    if (end && data.byteLength === 0) this.#send(Kind.BODY, { end: true });
    if (end) this.#end({ sent: true });
  }

  /** Sends a body to its end. @param {ReadableStream<Uint8Array> | null} stream */
  async sendAll(stream) {
    if (stream) {
      for await (const piece of /** @type {AsyncIterable<any>} */ (/** @type {unknown} */ (stream))) await this.send(bytesOf(piece));
    }
    await this.send(new Uint8Array(0), true);
  }

  /** Sends one WebSocket message. @param {string | Uint8Array} message */
  async message(message) {
    const data = bytesOf(message);
    await this.#takeRoom(data.byteLength);
    this.#send(Kind.BODY, { text: typeof message === 'string' }, data);
  }

  /** Closes a WebSocket, or aborts; nothing happens when the exchange is over. @param {number} [code] @param {string} [reason] */
  hangUp(code, reason = '') {
    if (!this.#open()) return;
    this.#send(Kind.HANGUP, code === undefined ? { reason } : { code, reason });
    this.gone = new Gone(code, reason);
    this.drop();
  }

  /** Is done with it: what still arrives is ignored. */
  drop() {
    this.#all.open.delete(this.number);
    this.#wake();
  }

  /** @param {import('./frames.mjs').Frame} frame */
  take({ kind, envelope, payload }) {
    if (kind === Kind.RESPONSE) this.#response = envelope;
    if (kind === Kind.BODY) this.#parts.push({ data: payload, end: envelope.end === true, text: envelope.text === true });
    if (kind === Kind.ROOM) this.#room += envelope.bytes ?? 0;
    if (kind === Kind.HANGUP) {
      this.gone = new Gone(envelope.code, envelope.reason);
      this.drop();
    }
    this.#wake();
  }

  /** @param {() => boolean} ready */
  async #until(ready) {
    while (!ready()) {
      if (this.gone || !this.#open()) throw this.gone ?? new Gone();
      await this.#turn();
    }
  }

  /** @returns {Promise<void>} */
  #turn() {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake() {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  /** @param {number} size */
  async #takeRoom(size) {
    await this.#until(() => this.#room >= Math.min(size, WINDOW));
    if (this.gone) throw this.gone;
    this.#room -= size;
  }

  /** @param {number} kind @param {any} envelope @param {Uint8Array} [payload] */
  #send(kind, envelope, payload) {
    if (this.#open()) this.#all.link.send(kind, this.number, envelope, payload);
  }

  /** @param {{sent?: boolean, received?: boolean}} side that has ended */
  #end({ sent = this.#sent, received = this.#received }) {
    this.#sent = sent;
    this.#received = received;
    if (sent && received) this.drop();
  }

  #open() {
    return this.#all.open.get(this.number) === this;
  }
}

/** All exchanges of the link. */
export class Exchanges {
  /** @type {Map<number, Exchange>} */
  open = new Map();
  #last = -1;

  /** @param {import('./link.mjs').Link} link */
  constructor(link) {
    this.link = link;
  }

  /** Begins an exchange with the server. @param {any} request */
  begin(request) {
    this.#last += 2;
    const exchange = new Exchange(this, this.#last, request);
    this.open.set(exchange.number, exchange);
    this.link.send(Kind.REQUEST, exchange.number, request);
    return exchange;
  }

  /** Takes a REQUEST of the server. @param {import('./frames.mjs').Frame} frame */
  accept({ stream, envelope }) {
    const exchange = new Exchange(this, stream, envelope);
    this.open.set(stream, exchange);
    return exchange;
  }

  /** Hands a frame to its exchange; frames of finished ones are ignored. @param {import('./frames.mjs').Frame} frame */
  take(frame) {
    this.open.get(frame.stream)?.take(frame);
  }

  /** Aborts what a run that has ended still asks of the server. @param {number} run */
  endRun(run) {
    for (const exchange of [...this.open.values()]) {
      if (exchange.number % 2 === 1 && exchange.request.run === run) exchange.hangUp(undefined, 'the run has ended');
    }
  }
}

/** @param {any} piece @returns {Uint8Array} */
function bytesOf(piece) {
  return typeof piece === 'string' ? Buffer.from(piece) : piece;
}
