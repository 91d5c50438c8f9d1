import { randomBytes } from 'node:crypto';

/**
 * Frames of WebSockets (RFC 6455) as a client writes and reads them.
 *
 * @typedef {{op: number, data: Buffer, code?: number, reason?: string}} Message
 */

export const Op = Object.freeze({ MORE: 0, TEXT: 1, BINARY: 2, CLOSE: 8, PING: 9, PONG: 10 });

/** The largest message that is read. */
const LARGEST = 64 * 1024 * 1024;

/** Codes that say something has happened and may not be sent. */
const NOT_SENT = new Set([1004, 1005, 1006, 1015]);

/** A frame of a client: masked, one whole message. @param {number} op @param {Uint8Array} data */
export function frame(op, data) {
  const mask = randomBytes(4);
  const masked = Buffer.from(data.map((byte, i) => byte ^ mask[i % 4]));
  return Buffer.concat([headOf(op, data.byteLength), mask, masked]);
}

/** @param {number} op @param {number} length */
function headOf(op, length) {
  if (length < 126) return Buffer.from([0x80 | op, 0x80 | length]);
  const head = Buffer.alloc(length < 65536 ? 4 : 10);
  head[0] = 0x80 | op;
  head[1] = 0x80 | (length < 65536 ? 126 : 127);
  if (length < 65536) head.writeUInt16BE(length, 2);
  else head.writeBigUInt64BE(BigInt(length), 2);
  return head;
}

/** The data of a close. @param {number} [code] @param {string} [reason] */
export function closing(code = 1000, reason = '') {
  if (NOT_SENT.has(code) || code < 1000 || code > 4999) return Buffer.alloc(0);
  const data = Buffer.alloc(2);
  data.writeUInt16BE(code);
  return Buffer.concat([data, Buffer.from(reason)]).subarray(0, 125);
}

/** Reads what a server writes. */
export class FrameReader {
  /** What has not been read yet. @type {Buffer} */
  #bytes = Buffer.alloc(0);
  /** Pieces that came since then. @type {Uint8Array[]} */
  #pieces = [];
  /** How many bytes must be there before it is worth looking. */
  #missing = 0;
  /** The message whose parts come. @type {{op: number, parts: Buffer[]}} */
  #open = { op: 0, parts: [] };

  /** @param {Uint8Array} piece @returns {Message[]} what is complete; throws for what is no frame */
  push(piece) {
    this.#pieces.push(piece);
    this.#missing -= piece.byteLength;
    if (this.#missing > 0) return [];
    this.#bytes = Buffer.concat([this.#bytes, ...this.#pieces]);
    this.#pieces = [];
    const messages = [];
    for (let next = this.#next(); next !== undefined; next = this.#next()) messages.push(...this.#message(next));
    return messages;
  }

  #next() {
    const bytes = this.#bytes;
    if (bytes.length < 2) return undefined;
    const short = bytes[1] & 0x7f;
    const start = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (bytes.length < start) return undefined;
    const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
    if (length > LARGEST || bytes[1] & 0x80) throw new Error('no frame of a WebSocket server');
    this.#missing = start + length - bytes.length;
    if (this.#missing > 0) return undefined;
    this.#bytes = bytes.subarray(start + length);
    return { op: bytes[0] & 0x0f, last: (bytes[0] & 0x80) !== 0, data: bytes.subarray(start, start + length) };
  }

  /** @param {{op: number, last: boolean, data: Buffer}} frame @returns {Message[]} */
  #message({ op, last, data }) {
    if (op === Op.CLOSE) return [{ op, data, code: data.length >= 2 ? data.readUInt16BE() : 1005, reason: data.subarray(2).toString() }];
    if (op >= Op.CLOSE) return [{ op, data }];
    if (op !== Op.MORE) this.#open = { op, parts: [] };
    this.#open.parts.push(data);
    return last ? [{ op: this.#open.op, data: Buffer.concat(this.#open.parts) }] : [];
  }
}
