import { LoadError, article, named } from './loader.mjs';
import { Refused, refusal } from './refusals.mjs';
import { userOf } from './users.mjs';
import { webRequest } from './web.mjs';

/**
 * Custom authentication: an Auth object of `@langchain/langgraph-sdk/auth` (reference 12).
 *
 * @typedef {{authenticate?: (request: Request) => any, callbacks?: Record<string, (context: any) => any>}} Handlers
 */

/** The handlers of one Auth object. */
export class Auth {
  /** @type {Handlers} */
  #handlers;

  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.#handlers = handlers;
  }

  /** Loads what a spec names. @param {string} spec @param {string} root */
  static async load(spec, root) {
    const found = await named(spec, root);
    const handlers = found?.['~handlerCache'];
    if (typeof handlers !== 'object' || handlers === null) {
      throw new LoadError(`${spec} is ${article(found)}; an Auth object of @langchain/langgraph-sdk/auth is needed`);
    }
    return new Auth(handlers);
  }

  /** What LOADED says about the part. */
  described() {
    return { handlers: Object.keys(this.#handlers.callbacks ?? {}), authenticates: this.#handlers.authenticate !== undefined };
  }

  /**
   * The user of a request; throws an HTTPRefusal when the handler refuses it.
   *
   * @param {any} call
   * @param {Uint8Array} body
   */
  async authenticate(call, body) {
    const handler = this.#handlers.authenticate;
    if (!handler) throw new Refused('the Auth object has no authenticate handler');
    const said = await called(() => handler(requestOf(call, body)), 401);
    const members = typeof said === 'string' ? { identity: said } : said;
    if (typeof members?.identity !== 'string') {
      throw new TypeError(`the authenticate handler returned ${article(said)} without an "identity": return a string, or an object with that member`);
    }
    return userOf(members);
  }

  /**
   * What the most specific handler says of an operation, with the value as the handler left it.
   *
   * @param {any} call
   */
  async authorize({ user, resource, action, value }) {
    const handler = this.#mostSpecific(resource, action);
    const context = { event: `${resource}:${action}`, resource, action, value: value ?? {}, ...whose(user) };
    if (!handler) return { allow: true, filter: null, value: context.value };
    return { ...verdict(await called(() => handler(context), 403)), value: context.value };
  }

  /** @param {string} resource @param {string} action */
  #mostSpecific(resource, action) {
    const { callbacks = {} } = this.#handlers;
    const event = [`${resource}:${action}`, resource, `*:${action}`, '*'].find((name) => callbacks[name]);
    return event && callbacks[event];
  }
}

/** @param {any} user */
function whose(user) {
  const known = userOf(user ?? {});
  return { user: known, permissions: known.permissions };
}

/** @param {() => any} handler @param {number} status of a refusal that names none */
async function called(handler, status) {
  try {
    return await handler();
  } catch (error) {
    throw refusal(error, status) ?? error;
  }
}

/** @param {any} said */
function verdict(said) {
  if (said === undefined || said === null || said === true) return { allow: true, filter: null };
  if (said === false) return { allow: false, filter: null };
  if (typeof said === 'object' && !Array.isArray(said)) return { allow: true, filter: said };
  throw new TypeError(`an authorisation handler returned ${article(said)}: return nothing, true, false or a filter`);
}

/** @param {any} call @param {Uint8Array} body @returns {Request} */
function requestOf({ method, url, path, query, headers }, body) {
  const target = url || `${path || '/'}${query ? `?${query}` : ''}`;
  return webRequest({ method, url: new URL(target, 'http://localhost'), headers, body: body.byteLength > 0 ? new Uint8Array(body) : undefined });
}
