import { randomBytes } from 'node:crypto';

import { open, seal } from './eax.mjs';
import { LoadError } from './loader.mjs';

/**
 * Encryption with LANGGRAPH_AES_KEY (reference 13), written and read alike by workers of both languages: values of
 * checkpoints before they travel, and chosen keys of JSON.
 */

/** Ends the type of a value that is encrypted. */
const MARK = '+aes';

/** Begins an encrypted member of JSON. */
const PREFIX = 'slipway:aes:';

const NONCE = 16;
const TAG = 16;

/** One key, and the members of JSON that it hides. */
export class AES {
  #key;
  #names;

  /** @param {string} key @param {string} [names] separated by commas */
  constructor(key, names = '') {
    this.#key = Buffer.from(key);
    if (![16, 24, 32].includes(this.#key.length)) throw new LoadError(`LANGGRAPH_AES_KEY has ${this.#key.length} bytes: it must have 16, 24 or 32`);
    this.#names = new Set(names.split(',').map((name) => name.trim()).filter(Boolean));
  }

  /** Loads the part `encryption`. @param {{path?: string, aes?: boolean}} part */
  static load({ path, aes }) {
    if (!aes) throw new LoadError(`${path} cannot be loaded: encryption handlers are written in Python; set LANGGRAPH_AES_KEY to encrypt what JavaScript graphs store`);
    return new AES(process.env.LANGGRAPH_AES_KEY ?? '', process.env.LANGGRAPH_AES_JSON_KEYS);
  }

  /** What LOADED says about the part. */
  described() {
    return { json: this.#names.size > 0, blob: true };
  }

  /** A serialiser that encrypts what another one writes; values from before there was encryption are read as they are. @param {any} inner */
  serde(inner) {
    return {
      dumpsTyped: async (/** @type {any} */ value) => {
        const [type, bytes] = await inner.dumpsTyped(value);
        return [type + MARK, this.#encrypt(bytes)];
      },
      loadsTyped: async (/** @type {string} */ type, /** @type {Uint8Array | string} */ data) => {
        if (!type.endsWith(MARK)) return inner.loadsTyped(type, data);
        return inner.loadsTyped(type.slice(0, -MARK.length), this.#decrypt(Buffer.from(/** @type {any} */ (data))));
      },
    };
  }

  /** Answers crypt.encrypt or crypt.decrypt. @param {any} call */
  async crypt({ verb, kind, value }) {
    const encrypt = verb === 'crypt.encrypt';
    if (kind !== 'blob') return this.#walk(value, encrypt ? (member) => this.#hide(member) : (member) => this.#show(member));
    const raw = Buffer.from(value ?? '', 'base64');
    return (encrypt ? this.#encrypt(raw) : this.#decrypt(raw)).toString('base64');
  }

  /** @param {any} value @param {(member: any) => any} change @returns {any} */
  #walk(value, change) {
    if (Array.isArray(value)) return value.map((item) => this.#walk(item, change));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#names.has(key) ? change(member) : this.#walk(member, change)]));
  }

  /** @param {any} member */
  #hide(member) {
    return PREFIX + this.#encrypt(Buffer.from(JSON.stringify(member))).toString('base64');
  }

  /** @param {any} member */
  #show(member) {
    if (typeof member !== 'string' || !member.startsWith(PREFIX)) return member;
    return JSON.parse(this.#decrypt(Buffer.from(member.slice(PREFIX.length), 'base64')).toString());
  }

  /** @param {Uint8Array} raw */
  #encrypt(raw) {
    const nonce = randomBytes(NONCE);
    const { cipher, tag } = seal(this.#key, nonce, raw);
    return Buffer.concat([nonce, tag, cipher]);
  }

  /** @param {Buffer} sealed */
  #decrypt(sealed) {
    return open(this.#key, sealed.subarray(0, NONCE), sealed.subarray(NONCE + TAG), sealed.subarray(NONCE, NONCE + TAG));
  }
}
