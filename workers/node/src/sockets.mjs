import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { Duplex } from 'node:stream';

import { FrameReader, Op, closing, frame } from './wsframes.mjs';

/**
 * WebSockets of an app that takes them from a Node server, as with `createNodeWebSocket` of @hono/node-ws: it is given a
 * server that listens nowhere, and each WebSocket of the link becomes a connection of it, in memory.
 *
 * @typedef {import('./exchange.mjs').Exchange} Exchange
 * @typedef {import('node:stream').Duplex} Socket
 */

/** Headers that belong to one connection and are made anew. */
const OWN = new Set(['connection', 'upgrade', 'sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions']);

/** What the answer to an upgrade says that is of the connection only. */
const ACCEPTED = new Set(['connection', 'upgrade', 'sec-websocket-accept']);

/** The server that is given to the app. */
export class Sockets {
  #server = http.createServer((_, response) => response.writeHead(404).end());

  /** @param {(server: http.Server) => void} inject the app's */
  constructor(inject) {
    inject(this.#server);
  }

  /** Offers a WebSocket to the app. @param {Exchange} exchange @returns {Promise<boolean>} whether the app took it */
  async take(exchange) {
    const [near, far] = pair();
    this.#server.emit('connection', far);
    const request = http.request({ createConnection: () => near, path: exchange.request.target, headers: headersOf(exchange.request.headers) });
    let answered = false;
    exchange.hungUp().then(() => answered || near.destroy());
    request.end();
    const answer = await Promise.race([
      once(request, 'upgrade').then(([response, , head]) => ({ response, head })),
      once(request, 'response').then(([response]) => response.resume() && undefined),
    ]).catch(() => undefined);
    answered = true;
    if (!answer) return near.destroy() && false;
    exchange.respond({ status: 101, headers: pairs(answer.response.rawHeaders) });
    await Promise.all([upload(exchange, near), download(exchange, near, answer.head)]);
    return true;
  }
}

/** @param {[string, string][]} headers */
function headersOf(headers) {
  const kept = headers.filter(([name]) => !OWN.has(name.toLowerCase()));
  const made = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': randomBytes(16).toString('base64'), 'sec-websocket-version': '13' };
  return [...kept.filter(([name]) => name.toLowerCase() !== 'host'), ['host', hostOf(headers)], ...Object.entries(made)].flat();
}

/** @param {[string, string][]} headers */
function hostOf(headers) {
  return headers.find(([name]) => name.toLowerCase() === 'host')?.[1] || 'localhost';
}

/** @param {string[]} raw names and values, in turn @returns {[string, string][]} */
function pairs(raw) {
  const all = Array.from({ length: raw.length / 2 }, (_, i) => /** @type {[string, string]} */ ([raw[2 * i], raw[2 * i + 1]]));
  return all.filter(([name]) => !ACCEPTED.has(name.toLowerCase()));
}

/** Passes the client's messages on. @param {Exchange} exchange @param {Socket} socket */
async function upload(exchange, socket) {
  try {
    for (;;) {
      const { data, text } = await exchange.receive();
      if (!socket.write(frame(text ? Op.TEXT : Op.BINARY, data))) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
    }
  } catch (error) {
    const { code, reason } = /** @type {import('./exchange.mjs').Gone} */ (error);
    if (socket.writable) socket.end(frame(Op.CLOSE, closing(code, reason)));
  }
}

/** Passes the app's messages on. @param {Exchange} exchange @param {Socket} socket @param {Buffer} head what came with the upgrade */
async function download(exchange, socket, head) {
  const reader = new FrameReader();
  try {
    await deliver(exchange, socket, reader.push(head));
    for await (const piece of socket) await deliver(exchange, socket, reader.push(piece));
  } catch {
    // A frame that is none, or a client that has gone: either way it is over.
  }
  exchange.hangUp(1011, 'the app failed');
}

/** @param {Exchange} exchange @param {Socket} socket @param {import('./wsframes.mjs').Message[]} messages */
async function deliver(exchange, socket, messages) {
  for (const { op, data, code, reason } of messages) {
    if (op === Op.TEXT) await exchange.message(data.toString());
    if (op === Op.BINARY) await exchange.message(data);
    if (op === Op.PING) socket.write(frame(Op.PONG, data));
    if (op === Op.CLOSE) exchange.hangUp(code, reason);
  }
}

/** Two ends of one connection. @returns {[End, End]} */
function pair() {
  const [a, b] = [new End(), new End()];
  a.other = b;
  b.other = a;
  return [a, b];
}

/** One end of a connection in memory. A write is done when the other end has been read. */
class End extends Duplex {
  /** @type {End | undefined} */
  other = undefined;
  /** Called when this end is read. @type {(() => void) | undefined} */
  #taken;

  _read() {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }

  /** @param {Buffer} chunk @param {string} _ @param {() => void} done */
  _write(chunk, _, done) {
    this.other?.hand(chunk, done);
  }

  /** @param {() => void} done */
  _final(done) {
    this.other?.push(null);
    done();
  }

  /** @param {Error | null} error @param {(error: Error | null) => void} done */
  _destroy(error, done) {
    const { other } = this;
    process.nextTick(() => other?.destroy());
    this.#taken?.();
    done(error);
  }

  /** @param {Buffer} chunk @param {() => void} taken */
  hand(chunk, taken) {
    if (this.destroyed) return taken();
    this.#taken = taken;
    this.push(chunk);
  }
}
