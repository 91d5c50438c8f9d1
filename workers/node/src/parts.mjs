import { App } from './app.mjs';
import { Auth } from './auth.mjs';
import { AES } from './crypt.mjs';
import { close, methodsOf, openSaver, openStore } from './custom.mjs';
import { Embedder } from './embed.mjs';
import { LoadError, refusal } from './loader.mjs';

/**
 * What else of the application a worker loads beside its graphs (protocol, "Starting").
 *
 * @typedef {import('./exchange.mjs').Exchanges} Exchanges
 * @typedef {import('./log.mjs').Log} Log
 * @typedef {Record<string, any>} Said what LOADED tells of a part
 */

/** How long the parts may take to close. */
const CLOSING_MS = 2000;

/** The parts of one worker. What is absent stays undefined. */
export class Parts {
  /** @type {Auth | undefined} */
  auth = undefined;
  /** @type {App | undefined} */
  app = undefined;
  /** @type {Embedder | undefined} */
  embedder = undefined;
  /** @type {AES | undefined} */
  encryption = undefined;
  /** @type {any} */
  checkpointer = undefined;
  /** @type {any} */
  store = undefined;
  #root;
  #exchanges;
  #log;

  /** @param {string} root the application's directory @param {Exchanges} exchanges @param {Log} log */
  constructor(root, exchanges, log) {
    this.#root = root;
    this.#exchanges = exchanges;
    this.#log = log;
  }

  /** Loads every part that is named. @param {Record<string, any>} parts @returns {Promise<Said>} what LOADED says of each */
  async load(parts) {
    const given = Object.entries(parts ?? {}).filter(([, part]) => part);
    return Object.fromEntries(await Promise.all(given.map(async ([name, part]) => [name, await this.#told(name, part)])));
  }

  /** Ends what was started, in the time there is. */
  async close() {
    if (!this.checkpointer && !this.store) return;
    const late = new Promise((resolve) => { setTimeout(resolve, CLOSING_MS); });
    await Promise.race([Promise.allSettled([close(this.checkpointer), close(this.store)]), late]);
  }

  /** @param {string} name @param {any} part @returns {Promise<Said>} */
  async #told(name, part) {
    try {
      return { ok: true, ...await this.#loadOne(name, part) };
    } catch (error) {
      return refusal(error);
    }
  }

  /** @param {string} name @param {any} part @returns {Promise<Said | void>} */
  async #loadOne(name, part) {
    switch (name) {
      case 'auth': return (this.auth = await Auth.load(part.path, this.#root)).described();
      case 'app': return (this.app = await App.load(part.path, this.#root, this.#exchanges, this.#log)).described();
      case 'embed': return void (this.embedder = await Embedder.load(part.spec, this.#root));
      case 'encryption': return (this.encryption = AES.load(part)).described();
      case 'checkpointer': return this.#loadCheckpointer(part);
      case 'store': return void (this.store = await openStore(part.path, this.#root));
      default: throw new LoadError(`workers for JavaScript do not know the part "${name}"`);
    }
  }

  /** Types a checkpoint may hold are a matter of Python's serialisers only. @param {any} part */
  async #loadCheckpointer({ path }) {
    if (!path) return {};
    this.checkpointer = await openSaver(path, this.#root);
    return { methods: methodsOf(this.checkpointer) };
  }
}
