import { currentRun } from './context.mjs';
import { Gone } from './exchange.mjs';
import { headerList, webResponse } from './web.mjs';

/**
 * Lets clients of `@langchain/langgraph-sdk` that were made without an address talk to this server: their requests travel
 * over the link, with the rights of the current run's user (reference 13).
 *
 * @typedef {import('./exchange.mjs').Exchanges} Exchanges
 *
 * @param {Exchanges} exchanges
 */
export function install(exchanges) {
  const globals = /** @type {any} */ (globalThis);
  globals[Symbol.for('langgraph_api:fetch')] = (/** @type {any} */ input, /** @type {any} */ init) => loopback(exchanges, new Request(input, init));
  globals[Symbol.for('langgraph_api:url')] = process.env.LANGGRAPH_API_URL || 'http://localhost:2024';
}

/** @param {Exchanges} exchanges @param {Request} request @returns {Promise<Response>} */
async function loopback(exchanges, request) {
  request.signal.throwIfAborted();
  const exchange = exchanges.begin({ ...requestOf(request), run: currentRun(), inner: false });
  const stop = () => exchange.hangUp(undefined, 'the caller was cancelled');
  request.signal.addEventListener('abort', stop, { once: true });
  return answered(exchange, request);
}

/**
 * Sends a request's body and waits for the answer.
 *
 * @param {import('./exchange.mjs').Exchange} exchange
 * @param {Request} request
 */
export async function answered(exchange, request) {
  exchange.sendAll(request.body).catch((error) => exchange.hangUp(undefined, String(error?.message)));
  try {
    return webResponse(await exchange.response(), () => exchange.body());
  } catch (error) {
    request.signal.throwIfAborted();
    throw error instanceof Gone ? new TypeError('fetch failed', { cause: error }) : error;
  }
}

/** The REQUEST for a web request. @param {Request} request */
export function requestOf(request) {
  const url = new URL(request.url);
  return {
    method: request.method,
    target: url.pathname + url.search,
    headers: headerList(request.headers),
    scheme: url.protocol.slice(0, -1),
    client: '',
    websocket: false,
  };
}
