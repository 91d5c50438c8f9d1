import { Kind } from './frames.mjs';

/**
 * What the worker itself has to say, sent to the server as structured lines. The user's own prints do not come here.
 *
 * @typedef {'debug' | 'info' | 'warning' | 'error'} Level
 */
export class Log {
  /** @type {import('./link.mjs').Link} */
  #link;
  /** @param {import('./link.mjs').Link} link */
  constructor(link) {
    this.#link = link;
  }

  /**
   * @param {Level} level
   * @param {string} message
   * @param {{run_id?: string, thread_id?: string}} [where]
   */
  say(level, message, where = {}) {
    const line = message.length > 8192 ? `${message.slice(0, 8192)}…` : message;
    this.#link.send(Kind.LOG, 0, { level, message: line, logger: 'slipway.worker.node', ...where });
  }

  /** @param {string} message @param {{run_id?: string, thread_id?: string}} [where] */
  warn(message, where) {
    this.say('warning', message, where);
  }

  /** @param {string} message @param {{run_id?: string, thread_id?: string}} [where] */
  error(message, where) {
    this.say('error', message, where);
  }
}
