import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { startWorker } from './support/fakeserver.mjs';

/** @type {Awaited<ReturnType<typeof startWorker>>} */
let w;
/** @type {any} */
let told;
before(async () => {
  w = await startWorker();
  told = (await w.server.load({}, { app: { path: './sockets.mjs:app' } })).parts.app;
});
after(() => w.stop());

/** @param {string} target */
async function connected(target) {
  const exchange = w.server.request({ target, websocket: true, headers: [['host', 'h'], ['upgrade', 'websocket'], ['connection', 'upgrade'], ['sec-websocket-key', 'AAAAAAAAAAAAAAAAAAAAAA=='], ['sec-websocket-version', '13'], ['sec-websocket-extensions', 'permessage-deflate'], ['x-a', 'b']] });
  await exchange.response();
  return exchange;
}

/** @param {import('./support/fakeserver.mjs').Scripted} exchange @param {number} n */
async function messages(exchange, n) {
  await exchange.until(() => exchange.parts.length >= n || exchange.gone);
  return exchange.parts.map(({ data, envelope }) => [envelope.text ? data.toString() : [...data], envelope.text]);
}

test('what answers a GET may take a WebSocket', () => {
  assert.deepEqual(told.routes.filter((/** @type {any} */ r) => r.kind === 'websocket').map((/** @type {any} */ r) => r.path), ['/ws', '/plain']);
});

test('messages go both ways, as text and as bytes', async () => {
  const exchange = await connected('/ws?key=k');
  assert.deepEqual(exchange.head, { status: 101, headers: [] });
  exchange.body('häh?', { text: true });
  exchange.body(Buffer.from([1, 2, 3]), { text: false });
  exchange.body('x'.repeat(70_000), { text: true });
  assert.deepEqual(await messages(exchange, 4), [['hello k b', true], ['HÄH?', true], [[3, 2, 1], false], ['X'.repeat(70_000), true]]);
  exchange.hangUp({ code: 4002, reason: 'enough' });
  while (!w.output().includes('closed 4002 enough')) await w.server.fetch({ target: '/plain' });
});

test('the app closes', async () => {
  const exchange = await connected('/ws?key=k');
  exchange.body('bye', { text: true });
  await exchange.until(() => exchange.gone);
  assert.deepEqual(exchange.gone, { code: 4001, reason: 'as you said' });
});

test('a reader without room holds back what the app sends', async () => {
  const exchange = await connected('/ws?key=k');
  await messages(exchange, 1);
  exchange.grant();
  exchange.body('flood', { text: true });
  await exchange.until(() => exchange.granted === 0);
  await w.server.fetch({ target: '/plain' });
  assert.equal(exchange.parts.length, 1 + 4);
  await exchange.until(() => { exchange.grant(); return exchange.parts.length === 1 + 16; });
  assert.deepEqual(exchange.parts.slice(1).map(({ data }) => data[0]), Array.from({ length: 16 }, (_, i) => i));
  exchange.hangUp();
});

test('what takes no WebSocket refuses it or leaves it to the built-in routes', async () => {
  assert.equal((await connected('/ws?key=wrong')).head.status, 401);
  assert.equal((await connected('/plain')).head.status, 200);
  assert.equal((await connected('/threads/t/stream/events')).head.pass, true);
});

test('a client that goes at once leaves nothing behind', async () => {
  for (let i = 0; i < 20; i++) w.server.request({ target: '/ws?key=k', websocket: true }).hangUp();
  assert.equal((await connected('/ws?key=still')).head.status, 101);
});
