import { createCipheriv, createDecipheriv, timingSafeEqual } from 'node:crypto';

/**
 * AES in EAX mode (Bellare, Rogaway, Wagner 2004), which Node's crypto does not have and Python's encrypting serialiser
 * writes: encryption in counter mode, authenticated by three CMACs.
 */

const BLOCK = 16;
const NOTHING = Buffer.alloc(0);

/** A text that has been changed, or was encrypted with another key. */
export class NotAuthentic extends Error {
  constructor() {
    super('the value cannot be decrypted: it was changed, or encrypted with another key');
    this.name = 'NotAuthentic';
  }
}

/**
 * @param {Buffer} key of 16, 24 or 32 bytes
 * @param {Uint8Array} nonce never used twice with a key
 * @param {Uint8Array} text
 * @param {Uint8Array} [header] authenticated beside the text
 * @returns {{cipher: Buffer, tag: Buffer}}
 */
export function seal(key, nonce, text, header = NOTHING) {
  const start = omac(key, 0, nonce);
  const ctr = createCipheriv(`aes-${key.length * 8}-ctr`, key, start);
  const cipher = Buffer.concat([ctr.update(text), ctr.final()]);
  return { cipher, tag: xor(xor(start, omac(key, 1, header)), omac(key, 2, cipher)) };
}

/**
 * Undoes seal; throws NotAuthentic.
 *
 * @param {Buffer} key
 * @param {Uint8Array} nonce
 * @param {Uint8Array} cipher
 * @param {Uint8Array} tag
 * @param {Uint8Array} [header]
 */
export function open(key, nonce, cipher, tag, header = NOTHING) {
  const start = omac(key, 0, nonce);
  const want = xor(xor(start, omac(key, 1, header)), omac(key, 2, cipher));
  if (tag.byteLength !== BLOCK || !timingSafeEqual(want, tag)) throw new NotAuthentic();
  const ctr = createDecipheriv(`aes-${key.length * 8}-ctr`, key, start);
  return Buffer.concat([ctr.update(cipher), ctr.final()]);
}

/** The CMAC of a block that holds a number, and a message. @param {Buffer} key @param {number} number @param {Uint8Array} message */
function omac(key, number, message) {
  const head = Buffer.alloc(BLOCK);
  head[BLOCK - 1] = number;
  return cmac(key, Buffer.concat([head, message]));
}

/** RFC 4493, for messages that are not empty. @param {Buffer} key @param {Buffer} message */
function cmac(key, message) {
  const whole = message.length % BLOCK === 0;
  const once = double(chain(key, Buffer.alloc(BLOCK)));
  const padded = whole ? Buffer.from(message) : Buffer.concat([message, Buffer.from([0x80])], Math.ceil(message.length / BLOCK) * BLOCK);
  const last = padded.subarray(padded.length - BLOCK);
  last.set(xor(last, whole ? once : double(once)));
  return chain(key, padded);
}

/** The last block of a text in CBC mode. @param {Buffer} key @param {Buffer} text */
function chain(key, text) {
  const cbc = createCipheriv(`aes-${key.length * 8}-cbc`, key, Buffer.alloc(BLOCK)).setAutoPadding(false);
  return cbc.update(text).subarray(-BLOCK);
}

/** Twice a number of the field GF(2^128). @param {Buffer} block */
function double(block) {
  const out = Buffer.alloc(BLOCK);
  for (let i = 0; i < BLOCK; i++) out[i] = (block[i] << 1) | ((block[i + 1] ?? 0) >> 7);
  if (block[0] & 0x80) out[BLOCK - 1] ^= 0x87;
  return out;
}

/** @param {Buffer} a @param {Buffer} b */
function xor(a, b) {
  return Buffer.from(a.map((byte, i) => byte ^ b[i]));
}
