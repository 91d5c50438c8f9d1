import { Decoder, Kind, encode } from './frames.mjs';

/**
 * @typedef {import('./frames.mjs').Frame} Frame
 * @typedef {import('./frames.mjs').Envelope} Envelope
 * @typedef {{envelope: Envelope, payload: Buffer}} Answer
 * @typedef {{resolve: (answer: Answer) => void, reject: (error: Error) => void}} Waiting
 */

/**
 * A storage operation that the server refused or could not carry out.
 * `code` is the server's: `stale` means that the run belongs to another worker by now.
 */
export class StorageError extends Error {
  /** @param {{error?: string, message?: string, code?: string} | undefined} refusal @param {string} op */
  constructor(refusal, op) {
    super(`${op}: ${refusal?.message ?? 'the server gave no reason'}`);
    this.name = refusal?.error ?? 'StorageError';
    this.code = refusal?.code ?? 'internal';
    this.storage = true;
  }
}

/**
 * The worker's end of the connection to its server. All frames of one tick leave in one write.
 * It knows frames, asks and answers; what frames mean is the business of whoever sets `onFrame`.
 */
export class Link {
  /** @type {import('node:stream').Duplex} */
  #socket;
  #decoder = new Decoder();
  /** @type {Buffer[]} */
  #outgoing = [];
  #scheduled = false;
  #lastAsk = 0;
  /** @type {Map<number, Waiting>} */
  #asks = new Map();
  #closed = false;

  /** Called for every frame but answers. @type {(frame: Frame) => void} */
  onFrame = () => {};
  /** Called once, when the other end is gone or sends what is no frame. @type {(error?: Error) => void} */
  onClose = () => {};

  /** @param {import('node:stream').Duplex} socket */
  constructor(socket) {
    this.#socket = socket;
    socket.on('data', (piece) => this.#receive(piece));
    socket.on('end', () => this.#close());
    socket.on('close', () => this.#close());
    socket.on('error', (error) => this.#close(error));
  }

  /**
   * Sends a frame. Frames leave in the order of the calls, at the end of the current tick.
   *
   * @param {number} kind
   * @param {number} stream
   * @param {Envelope | string} envelope
   * @param {string | Uint8Array | Uint8Array[]} [payload]
   */
  send(kind, stream, envelope, payload) {
    if (this.#closed) return;
    this.#outgoing.push(encode(kind, stream, envelope, payload));
    if (this.#scheduled) return;
    this.#scheduled = true;
    process.nextTick(() => this.flush());
  }

  /** Hands everything sent so far to the socket. */
  flush() {
    this.#scheduled = false;
    const frames = this.#outgoing;
    this.#outgoing = [];
    if (this.#closed || frames.length === 0) return;
    this.#socket.write(frames.length === 1 ? frames[0] : Buffer.concat(frames));
  }

  /** Sends a storage operation without waiting for it. @param {Envelope} operation @param {Uint8Array[]} [payload] */
  tell(operation, payload) {
    this.send(Kind.TELL, 0, operation, payload);
  }

  /**
   * Sends a storage operation and waits for its answer; throws a StorageError when the server refuses it.
   *
   * @param {Envelope} operation
   * @param {Uint8Array[]} [payload]
   * @returns {Promise<Answer>}
   */
  async ask(operation, payload) {
    if (this.#closed) throw new StorageError({ message: 'the server is gone' }, operation.op);
    const stream = ++this.#lastAsk;
    const answer = await new Promise((/** @type {(a: Answer) => void} */ resolve, reject) => {
      this.send(Kind.ASK, stream, operation, payload);
      this.#asks.set(stream, { resolve, reject });
    });
    if (!answer.envelope.ok) throw new StorageError(answer.envelope.error, operation.op);
    return answer;
  }

  /** @param {Buffer} piece */
  #receive(piece) {
    try {
      for (const frame of this.#decoder.push(piece)) this.#dispatch(frame);
    } catch (error) {
      this.#close(/** @type {Error} */ (error));
    }
  }

  /** @param {Frame} frame */
  #dispatch(frame) {
    if (frame.kind !== Kind.ANSWER) return this.onFrame(frame);
    const waiting = this.#asks.get(frame.stream);
    this.#asks.delete(frame.stream);
    waiting?.resolve({ envelope: frame.envelope, payload: frame.payload });
  }

  /** @param {Error} [error] */
  #close(error) {
    if (this.#closed) return;
    this.#closed = true;
    const gone = new StorageError({ message: 'the server is gone' }, 'link');
    for (const waiting of this.#asks.values()) waiting.reject(gone);
    this.#asks.clear();
    this.#socket.destroy();
    this.onClose(error);
  }
}

/**
 * Cuts a payload into the byte strings an envelope names the sizes of, in order.
 * The pieces are views: whoever keeps one copies it.
 */
export class Cutter {
  #at = 0;
  /** @param {Uint8Array} payload */
  constructor(payload) {
    this.payload = payload;
  }

  /** @param {number} size @returns {Uint8Array} */
  take(size) {
    const part = this.payload.subarray(this.#at, this.#at + size);
    if (part.byteLength !== size) throw new Error(`malformed answer: ${size} bytes expected, ${part.byteLength} left`);
    this.#at += size;
    return part;
  }
}
