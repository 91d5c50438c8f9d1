import { Refused } from './refusals.mjs';

/**
 * Between the web's Request and Response and the protocol's requests and responses.
 */

/** Methods that the web's Request cannot have. */
const FORBIDDEN = new Set(['CONNECT', 'TRACE', 'TRACK']);

/** Statuses whose answers have no body. */
const BODILESS = new Set([204, 205, 304]);

/** Whether JavaScript code can be given a request with this method. @param {string} method */
export function isWebMethod(method) {
  return !FORBIDDEN.has(method.toUpperCase());
}

/**
 * A Request. Throws Refused for what is no request of the web's.
 *
 * @param {{method: string, url: URL | string, headers: [string, string][], body?: any, signal?: AbortSignal}} from
 * @returns {Request}
 */
export function webRequest({ method, url, headers, body, signal }) {
  const upper = method.toUpperCase();
  if (!isWebMethod(method)) throw new Refused(`the method ${upper} cannot be handled by JavaScript code`);
  const withBody = body && !['GET', 'HEAD'].includes(upper);
  return new Request(url, /** @type {any} */ ({ method: upper, headers: webHeaders(headers), signal, ...(withBody ? { body, duplex: 'half' } : {}) }));
}

/** Headers of the protocol as the web's; what no header may hold becomes "?". @param {[string, string][]} pairs */
export function webHeaders(pairs) {
  const headers = new Headers();
  for (const [name, value] of pairs ?? []) {
    try {
      headers.append(name, value.replace(/[^\t\x20-\x7e\x80-\xff]/g, '?'));
    } catch {
      // A name that is none: nobody can ask for it.
    }
  }
  return headers;
}

/** The web's headers as the protocol has them. @param {Headers} headers @returns {[string, string][]} */
export function headerList(headers) {
  return [...headers];
}

/** A Response for a RESPONSE whose body comes from a stream. @param {any} envelope @param {() => ReadableStream} body */
export function webResponse({ status, headers }, body) {
  return new Response(BODILESS.has(status) ? null : body(), { status, headers: webHeaders(headers) });
}
