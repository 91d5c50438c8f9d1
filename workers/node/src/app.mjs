import { failureOf, traceOf } from './failure.mjs';
import { Gone } from './exchange.mjs';
import { LoadError, article, beside, named } from './loader.mjs';
import { answered, requestOf } from './loopback.mjs';
import { routesOf } from './routes.mjs';
import { Sockets } from './sockets.mjs';
import { headerList, isWebMethod, webRequest } from './web.mjs';

/**
 * The application's own HTTP app: a Hono app, or anything with fetch(request) (reference 9 and 13).
 *
 * @typedef {import('./exchange.mjs').Exchange} Exchange
 * @typedef {import('./exchange.mjs').Exchanges} Exchanges
 * @typedef {import('./log.mjs').Log} Log
 *
 * What belongs to one request of the server; the app sees it as its `env`.
 *
 * @typedef {{exchange: Exchange, passed: boolean, relay?: Exchange, relayed?: any}} Serving
 */

/** Where an app's env holds what belongs to the request. */
const SERVING = Symbol('slipway.serving');

/** One app. */
export class App {
  #fetch;
  #exchanges;
  #sockets;
  #log;
  /** @type {{routes: any[] | null, middleware: boolean}} */
  #described;

  /**
   * @param {any} app what was exported
   * @param {Exchanges} exchanges
   * @param {Log} log
   * @param {Sockets} [sockets] what takes its WebSockets
   */
  constructor(app, exchanges, log, sockets) {
    this.#exchanges = exchanges;
    this.#log = log;
    this.#sockets = sockets;
    this.#described = isHono(app) ? routesOf(app.routes, sockets !== undefined) : { routes: null, middleware: false };
    const served = isHono(app) ? this.#around(app) : app;
    this.#fetch = typeof served === 'function' ? served : served.fetch.bind(served);
  }

  /** Loads what a spec names. @param {string} spec @param {string} root @param {Exchanges} exchanges @param {Log} log */
  static async load(spec, root, exchanges, log) {
    const found = await named(spec, root);
    if (typeof found !== 'function' && typeof found?.fetch !== 'function') {
      throw new LoadError(`${spec} is ${article(found)}; a Hono app, or an object or function that answers fetch(request), is needed`);
    }
    const inject = await beside(spec, root, 'injectWebSocket');
    return new App(found, exchanges, log, typeof inject === 'function' ? new Sockets(inject) : undefined);
  }

  /** What LOADED says about the part. */
  described() {
    return this.#described;
  }

  /** Answers one request of the server; never rejects. @param {Exchange} exchange */
  async serve(exchange) {
    const left = new AbortController();
    exchange.hungUp().then((gone) => gone && left.abort(gone));
    try {
      if (!isWebMethod(exchange.request.method)) return await plain(exchange, 405, 'Method Not Allowed');
      await this.#serve(exchange, left.signal);
    } catch (error) {
      if (!(error instanceof Gone)) await this.#failed(exchange, error);
    } finally {
      exchange.drop();
    }
  }

  /** @param {Exchange} exchange @param {AbortSignal} signal */
  async #serve(exchange, signal) {
    if (exchange.websocket && await this.#sockets?.take(exchange)) return;
    /** @type {Serving} */
    const serving = { exchange, passed: false };
    const response = await this.#fetch(incoming(exchange, signal), { [SERVING]: serving }, CONTEXT);
    if (!(response instanceof Object) || typeof response.status !== 'number') throw new TypeError(`the HTTP app returned ${article(response)}: return a Response`);
    if (serving.relay) return relay(exchange, serving.relay, serving.relayed);
    if (serving.passed || this.#unknown(response)) return exchange.respond({ pass: true });
    exchange.respond({ status: response.status, headers: headerList(response.headers) });
    await exchange.sendAll(response.body);
  }

  /** Whether an app that cannot tell its routes says that it has none for a path. @param {Response} response */
  #unknown(response) {
    const { routes, middleware } = this.#described;
    return routes === null && !middleware && response.status === 404;
  }

  /** With a status as long as there is none. @param {Exchange} exchange @param {unknown} error */
  async #failed(exchange, error) {
    this.#log.error(`the HTTP app failed: ${failureOf(error).message}\n${traceOf(error)}`);
    if (exchange.responded) return exchange.hangUp(exchange.websocket ? 1011 : undefined, 'the app failed');
    await plain(exchange, 500, 'Internal Server Error').catch(() => {});
  }

  /**
   * A Hono app that mounts the application's: what none of its routes knows goes to the built-in ones, through its
   * middleware, and its handlers find the user as `c.get('auth')`.
   *
   * @param {any} app
   */
  #around(app) {
    const outer = new app.constructor();
    outer.use('*', (/** @type {any} */ c, /** @type {any} */ next) => {
      const { user } = c.env[SERVING].exchange.request;
      if (user) c.set('auth', { user, scopes: user.permissions ?? [] });
      return next();
    });
    outer.route('/', app);
    outer.all('*', (/** @type {any} */ c) => this.#rest(c));
    return outer;
  }

  /** @param {any} c Hono's context */
  async #rest(c) {
    /** @type {Serving} */
    const serving = c.env[SERVING];
    if (!this.#described.middleware) {
      serving.passed = true;
      return new Response(null, { status: 404 });
    }
    const request = await unread(c.req);
    const { number, websocket, request: { client, scheme } } = serving.exchange;
    const inner = this.#exchanges.begin({ ...requestOf(request), client, scheme, websocket, run: 0, inner: true, outer: number });
    serving.exchange.hungUp().then(() => inner.hangUp(undefined, 'the client has gone'));
    return websocket ? upgraded(serving, inner) : answered(inner, request);
  }
}

/** Answers a line of text. @param {Exchange} exchange @param {number} status @param {string} text */
async function plain(exchange, status, text) {
  exchange.respond({ status, headers: [['content-type', 'text/plain; charset=utf-8']] });
  await exchange.send(Buffer.from(text), true);
}

/** What Hono calls the execution context: of what platforms have there, background work. */
const CONTEXT = Object.freeze({ waitUntil: () => {}, passThroughOnException: () => {}, props: {} });

/** @param {any} app */
function isHono(app) {
  return typeof app?.fetch === 'function' && typeof app.route === 'function' && Array.isArray(app.routes);
}

/** @param {Exchange} exchange @param {AbortSignal} signal */
function incoming(exchange, signal) {
  const { method, target, headers, scheme } = exchange.request;
  const hosts = headers.find((/** @type {[string, string]} */ [name]) => name.toLowerCase() === 'host');
  const url = urlOf(`${scheme || 'http'}://${hosts?.[1] || 'localhost'}${target}`) ?? new URL(`http://localhost${target}`);
  return webRequest({ method: method || 'GET', url, headers, body: exchange.websocket ? undefined : exchange.body(), signal });
}

/** The request with its body, also when middleware has read it. @param {any} req Hono's */
async function unread(req) {
  const { url, method, headers, signal, bodyUsed } = req.raw;
  return bodyUsed ? new Request(url, { method, headers, signal, body: await req.arrayBuffer() }) : req.raw;
}

/** @param {string} text */
function urlOf(text) {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** A WebSocket of a built-in route, seen through the app's middleware. @param {Serving} serving @param {Exchange} inner */
async function upgraded(serving, inner) {
  const envelope = await inner.response();
  if (envelope.status !== 101) return new Response(inner.body(), { status: envelope.status, headers: envelope.headers });
  serving.relay = inner;
  serving.relayed = envelope;
  return new Response(null, { status: 200 });
}

/** Passes the messages of a WebSocket on, both ways. @param {Exchange} outer @param {Exchange} inner @param {any} envelope */
async function relay(outer, inner, { headers }) {
  outer.respond({ status: 101, headers });
  await Promise.all([passOn(outer, inner), passOn(inner, outer)]);
}

/** @param {Exchange} from @param {Exchange} to */
async function passOn(from, to) {
  try {
    for (;;) {
      const { data, text } = await from.receive();
      await to.message(text ? data.toString() : data);
    }
  } catch (error) {
    const gone = /** @type {Gone} */ (error);
    to.hangUp(gone.code, gone.reason);
  }
}
