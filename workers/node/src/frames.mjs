/**
 * Frames of the worker protocol (worker/wire/DESIGN.md): how they are written and read.
 *
 * @typedef {Record<string, any>} Envelope
 * @typedef {{kind: number, stream: number, envelope: Envelope, payload: Buffer}} Frame
 */

/** The kinds of frames, by their names in the protocol. */
export const Kind = Object.freeze({
  HELLO: 1,
  LOAD: 2,
  LOADED: 3,
  RUN: 10,
  CANCEL: 11,
  CREDIT: 12,
  CHUNK: 13,
  DONE: 14,
  CALL: 20,
  RETURN: 21,
  ABORT: 22,
  ASK: 30,
  ANSWER: 31,
  TELL: 32,
  LOG: 40,
  REQUEST: 50,
  RESPONSE: 51,
  BODY: 52,
  ROOM: 53,
  HANGUP: 54,
});

/** The largest frame either side may send, counted after the length field. */
export const MAX_FRAME = 64 * 1024 * 1024;

/** Bytes of kind, stream and envelope length. */
const HEADER = 9;

/** A frame that is larger than the protocol allows; nothing of it has been sent. */
export class FrameTooLarge extends Error {
  /** @param {number} size */
  constructor(size) {
    super(`a frame of ${size} bytes is larger than the ${MAX_FRAME} bytes the worker link carries; keep large data outside of the state`);
    this.name = 'FrameTooLarge';
  }
}

/**
 * Encodes one frame as a single buffer.
 *
 * @param {number} kind
 * @param {number} stream
 * @param {Envelope | string} envelope an object, or its JSON text when the caller has it already
 * @param {string | Uint8Array | Uint8Array[]} [payload] text is written as UTF-8
 * @returns {Buffer}
 */
export function encode(kind, stream, envelope, payload = '') {
  const head = typeof envelope === 'string' ? envelope : JSON.stringify(envelope);
  const headSize = Buffer.byteLength(head);
  const size = HEADER + headSize + sizeOf(payload);
  if (size > MAX_FRAME) throw new FrameTooLarge(size);
  const frame = Buffer.allocUnsafe(4 + size);
  frame.writeUInt32BE(size, 0);
  frame.writeUInt8(kind, 4);
  frame.writeUInt32BE(stream, 5);
  frame.writeUInt32BE(headSize, 9);
  frame.write(head, 13);
  put(frame, 13 + headSize, payload);
  return frame;
}

/** @param {string | Uint8Array | Uint8Array[]} payload */
function sizeOf(payload) {
  if (typeof payload === 'string') return Buffer.byteLength(payload);
  if (!Array.isArray(payload)) return payload.byteLength;
  return payload.reduce((sum, part) => sum + part.byteLength, 0);
}

/**
 * @param {Buffer} frame
 * @param {number} at
 * @param {string | Uint8Array | Uint8Array[]} payload
 */
function put(frame, at, payload) {
  if (typeof payload === 'string') {
    frame.write(payload, at);
    return;
  }
  for (const part of Array.isArray(payload) ? payload : [payload]) {
    frame.set(part, at);
    at += part.byteLength;
  }
}

/**
 * Reads frames out of the pieces in which a stream delivers them.
 * A frame's payload is a view of memory that is not reused.
 */
export class Decoder {
  /** @type {Buffer[]} */
  #pieces = [];
  #size = 0;

  /**
   * Takes the next piece and returns the frames it completes.
   *
   * @param {Buffer} piece
   * @returns {Frame[]}
   */
  push(piece) {
    this.#pieces.push(piece);
    this.#size += piece.length;
    const frames = [];
    for (let frame = this.#next(); frame; frame = this.#next()) frames.push(frame);
    return frames;
  }

  /** @returns {Frame | undefined} */
  #next() {
    if (this.#size < 4) return undefined;
    const size = this.#join(4).readUInt32BE(0);
    if (size > MAX_FRAME) throw new FrameTooLarge(size);
    if (size < HEADER) throw new Error(`malformed frame: ${size} bytes are too few for its header`);
    if (this.#size < 4 + size) return undefined;
    const all = this.#join(4 + size);
    this.#rest(all, 4 + size);
    return parse(all.subarray(4, 4 + size));
  }

  /** Makes the first n bytes contiguous, copying only where a frame spans pieces. @param {number} n */
  #join(n) {
    if (this.#pieces[0].length < n) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0];
  }

  /** @param {Buffer} first @param {number} n */
  #rest(first, n) {
    if (first.length === n) this.#pieces.shift();
    else this.#pieces[0] = first.subarray(n);
    this.#size -= n;
  }
}

/** @param {Buffer} body @returns {Frame} */
function parse(body) {
  const n = body.readUInt32BE(5);
  if (HEADER + n > body.length) throw new Error(`malformed frame: an envelope of ${n} bytes in a frame of ${body.length}`);
  return {
    kind: body.readUInt8(0),
    stream: body.readUInt32BE(1),
    envelope: JSON.parse(body.toString('utf8', HEADER, HEADER + n)),
    payload: body.subarray(HEADER + n),
  };
}
