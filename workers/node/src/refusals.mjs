/**
 * How user code refuses a request: exceptions with a status (reference 12).
 */

/** A call cannot be answered as it was asked; the code is one of the protocol's. */
export class Refused extends Error {
  /** @param {string} message @param {'invalid' | 'not_found' | 'internal'} [code] */
  constructor(message, code = 'invalid') {
    super(message);
    this.name = 'Refused';
    this.code = code;
  }
}

/** The client gets exactly this status, detail and headers. */
export class HTTPRefusal extends Error {
  /** @param {string} name @param {number} status @param {string} detail @param {[string, string][]} headers */
  constructor(name, status, detail, headers) {
    super(detail);
    this.name = name;
    this.code = 'http';
    this.status = status;
    this.headers = headers;
  }
}

/** Mistakes of a handler: they refuse nobody, the server answers that it has failed. */
const MISTAKES = new Set(['TypeError', 'ReferenceError', 'SyntaxError', 'RangeError', 'URIError', 'EvalError']);

/**
 * What an exception of a handler says to the client, or undefined if it is a mistake of the handler. Every other error
 * refuses: with its own status, or with `status` where it has none, as failed assertions do.
 *
 * @param {any} error
 * @param {number} status 401 for an authenticate handler, 403 for an authorisation handler
 * @returns {HTTPRefusal | undefined}
 */
export function refusal(error, status) {
  if (typeof error !== 'object' || error === null) return undefined;
  const own = [error.status, error.status_code, error.statusCode].find((value) => value !== undefined);
  const plain = error instanceof Error && !MISTAKES.has(error.name);
  if (own === undefined && !plain) return undefined;
  const valid = Number.isInteger(own) && own >= 100 && own <= 599;
  const detail = error.detail ?? error.message;
  return new HTTPRefusal(error.name ?? 'Error', valid ? own : status, detail || PHRASES[status], headersOf(error.headers));
}

/** @param {any} headers a HeadersInit or nothing @returns {[string, string][]} */
function headersOf(headers) {
  if (headers === undefined || headers === null) return [];
  const pairs = typeof headers[Symbol.iterator] === 'function' ? [...headers] : Object.entries(headers);
  return pairs.map(([name, value]) => [String(name), String(value)]);
}

/** @type {Record<number, string>} */
const PHRASES = { 401: 'Unauthorized', 403: 'Forbidden' };
