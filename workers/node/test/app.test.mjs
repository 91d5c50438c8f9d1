import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Kind } from '../src/frames.mjs';
import { startWorker } from './support/fakeserver.mjs';

/** @type {Record<string, Awaited<ReturnType<typeof startWorker>>>} */
const workers = {};
/** @type {Record<string, any>} */
const told = {};
before(async () => {
  await Promise.all(['app', 'wrapped', 'plain', 'bare', 'wrong'].map(async (name) => {
    workers[name] = await startWorker();
    told[name] = (await workers[name].server.load({ calls: './graphs.mjs:calls', hangs: './graphs.mjs:hangs' }, { app: { path: `./apps.mjs:${name}` } })).parts.app;
  }));
});
after(() => Promise.all(Object.values(workers).map((worker) => worker.stop())));

/** @param {string} name @param {any} request */
const fetched = async (name, request) => {
  const { response, body } = await workers[name].server.fetch(request);
  return { ...response, headers: Object.fromEntries(response.headers ?? []), body: body.toString() };
};

test('LOADED tells the routes of a Hono app', () => {
  assert.equal(told.app.ok, true);
  assert.equal(told.app.middleware, false);
  assert.deepEqual(told.app.routes.map((/** @type {any} */ r) => `${r.methods ?? '*'} ${r.path} ${r.kind}`), [
    'GET,HEAD /hello/{name} http', 'POST /echo http', 'GET,HEAD /flood http', 'GET,HEAD /forever http', 'GET,HEAD /cookies http', 'GET,HEAD /missing http',
    'GET,HEAD /broken http', 'GET,HEAD /breaks http', 'GET,HEAD /files/{path:path} http', '* /any/{rest:path} http', '* /any http', 'GET,HEAD /maybe http', 'GET,HEAD /maybe/{id} http', 'GET,HEAD /asks http',
  ]);
  assert.deepEqual([told.wrapped.middleware, told.wrapped.routes.length], [true, 1]);
  assert.deepEqual(told.plain, { ok: true, routes: null, middleware: false });
});

test('a route answers, with path, query and user', async () => {
  const got = await fetched('app', { target: '/hello/a%20b?q=1', user: { identity: 'ann', permissions: [] } });
  assert.equal(got.status, 200);
  assert.deepEqual(JSON.parse(got.body), { name: 'a b', q: '1', user: 'ann', url: 'http://test.local/hello/a%20b?q=1' });
  assert.deepEqual(JSON.parse((await fetched('app', { target: '/hello/x', headers: [], scheme: 'https' })).body).url, 'https://localhost/hello/x');
});

test('headers stay apart, empty answers empty', async () => {
  const { response, body } = await workers.app.server.fetch({ target: '/cookies' });
  assert.deepEqual(response, { status: 204, headers: [['set-cookie', 'a=1'], ['set-cookie', 'b=2']] });
  assert.equal(body.length, 0);
});

test('bodies are streamed both ways, while they are being sent', async () => {
  const exchange = workers.app.server.request({ method: 'POST', target: '/echo' });
  exchange.body('one ');
  assert.deepEqual(await exchange.response(), { status: 201, headers: [['x-kind', 'echo']] });
  await exchange.until(() => exchange.parts.length > 0);
  assert.equal(exchange.parts[0].data.toString(), 'ONE ');
  exchange.body('two', { end: true });
  assert.equal((await exchange.all()).toString(), 'ONE TWO');
});

test('a reader without room holds back the app, a sender gets room as it is read', async () => {
  const exchange = workers.app.server.request({ target: '/flood' });
  exchange.body('', { end: true });
  await exchange.until(() => exchange.granted === 0);
  await fetched('app', { target: '/hello/other' }); // Others are not held back, and nothing more has come meanwhile.
  assert.equal(Buffer.concat(exchange.parts.map(({ data }) => data)).length, 256 * 1024);
  assert.equal((await exchange.all()).length, 1024 * 1024);
  const upload = workers.app.server.request({ method: 'POST', target: '/echo' });
  upload.body('x'.repeat(1000));
  await upload.until(() => upload.room === 256 * 1024 + 1000);
  upload.body('', { end: true });
  assert.equal((await upload.all()).length, 1000);
});

test('an app sees that its client has gone', async () => {
  const exchange = workers.app.server.request({ target: '/forever' });
  exchange.body('', { end: true });
  await exchange.until(() => exchange.parts.length > 2);
  exchange.hangUp();
  while (!workers.app.output().includes('client gone')) await fetched('app', { target: '/hello/x' });
});

test('what fails is told, and breaks nothing', async () => {
  const got = await fetched('app', { target: '/broken' });
  assert.deepEqual([got.status, got.body], [500, 'Internal Server Error']);
  const exchange = workers.app.server.request({ target: '/breaks' });
  exchange.body('', { end: true });
  await exchange.until(() => exchange.gone);
  assert.equal(exchange.gone.reason, 'the app failed');
  assert.equal((await fetched('wrong', { target: '/' })).status, 500);
  assert.match(workers.wrong.server.logs.at(-1).message, /returned a string: return a Response/);
});

test('paths the app does not know pass', async () => {
  for (const [name, request] of /** @type {[string, any][]} */ ([['app', { target: '/nowhere' }], ['app', { target: '/echo', method: 'GET' }], ['plain', { target: '/x' }], ['app', { target: '/threads/t/stream/events', websocket: true, headers: [['upgrade', 'websocket']] }]])) {
    assert.equal((await fetched(name, request)).pass, true, JSON.stringify(request));
  }
  assert.equal((await fetched('app', { target: '/missing' })).status, 404);
});

test('other forms of routes', async () => {
  const text = async (/** @type {string} */ target, method = 'GET') => (await fetched('app', { target, method })).body;
  assert.deepEqual([await text('/files/a/b'), await text('/any/thing', 'DELETE'), await text('/maybe'), await text('/maybe/7')], ['a/b', 'DELETE', 'none', '7']);
  assert.deepEqual([(await fetched('plain', { target: '/plain' })).body, (await fetched('bare', { method: 'PUT', target: '/' })).body], ['found', 'PUT']);
});

test('hostile requests are answered', async () => {
  for (const more of [{ method: 'TRACE' }, { headers: [['host', 'a b'], ['', 'x'], ['x', '\u2603']] }, { headers: [['host', '']] }, { target: '//evil' }]) {
    const got = await fetched('app', { target: '/nowhere', ...more });
    assert.ok(got.pass || got.status < 500, JSON.stringify([more, got]));
  }
});

test('middleware wraps the built-in routes', async () => {
  const { server } = workers.wrapped;
  assert.equal((await fetched('wrapped', { target: '/mine' })).headers['x-stamp'], '1');
  assert.equal((await fetched('wrapped', { target: '/blocked' })).status, 418);
  const begun = server.begun();
  const outer = server.request({ method: 'POST', target: '/threads?a=1', headers: [['host', 'h'], ['x-read', '1'], ['content-type', 'application/json']] });
  outer.body('{"b":1}', { end: true });
  const inner = await begun;
  const { method, target, outer: from, inner: builtIn, websocket } = inner.request;
  assert.deepEqual({ method, target, from, builtIn, websocket }, { method: 'POST', target: '/threads?a=1', from: outer.number, builtIn: true, websocket: false });
  assert.equal((await inner.all()).toString(), '{"b":1}');
  inner.respond({ status: 200, headers: [['x-a', 'b']] });
  inner.body('data: 1\n\n');
  const response = await outer.response();
  assert.deepEqual(Object.fromEntries(response.headers), { 'x-a': 'b', 'x-stamp': '1' });
  await outer.until(() => outer.parts.length > 0);
  inner.body('', { end: true });
  assert.equal((await outer.all()).toString(), 'data: 1\n\n');
});

test('a client that goes takes the inner request with it', async () => {
  const { server } = workers.wrapped;
  const begun = server.begun();
  const outer = server.request({ target: '/runs/stream' });
  outer.body('', { end: true });
  const inner = await begun;
  outer.hangUp();
  await inner.until(() => inner.gone);
});

test('middleware lets WebSockets of built-in routes through', async () => {
  const { server } = workers.wrapped;
  const begun = server.begun();
  const outer = server.request({ target: '/threads/t/stream/events', websocket: true, headers: [['host', 'h'], ['upgrade', 'websocket']] });
  const inner = await begun;
  assert.equal(inner.request.websocket, true);
  inner.respond({ status: 101, headers: [['sec-websocket-protocol', 'v2']] });
  assert.deepEqual(await outer.response(), { status: 101, headers: [['sec-websocket-protocol', 'v2']] });
  outer.body('hällo', { text: true });
  await inner.until(() => inner.parts.length > 0);
  assert.deepEqual([inner.parts[0].data.toString(), inner.parts[0].envelope], ['hällo', { text: true }]);
  inner.body(Buffer.from([1, 2]), { text: false });
  await outer.until(() => outer.parts.length > 0);
  assert.deepEqual([[...outer.parts[0].data], outer.parts[0].envelope], [[1, 2], { text: false }]);
  inner.hangUp({ code: 4001, reason: 'bye' });
  await outer.until(() => outer.gone);
  assert.deepEqual(outer.gone, { code: 4001, reason: 'bye' });
  assert.equal((await fetched('wrapped', { target: '/blocked', websocket: true })).status, 418);
});

test('a graph talks to its own server with the SDK', async () => {
  const { server } = workers.app;
  const begun = server.begun();
  const run = server.run({ graph_id: 'calls', input: {} });
  const exchange = await begun;
  const { method, target, run: stream, inner } = exchange.request;
  assert.deepEqual({ method, target, stream, inner }, { method: 'POST', target: '/threads', stream: run.stream, inner: false });
  assert.deepEqual(JSON.parse((await exchange.all()).toString()).metadata, { from: 'graph' });
  exchange.respond({ status: 200, headers: [['content-type', 'application/json']] });
  exchange.body('{"thread_id":"made"}', { end: true });
  assert.deepEqual((await run.ended).snapshot.values.note, 'made');
});

test('a cancelled run takes its requests with it', async () => {
  const { server } = workers.app;
  const begun = server.begun();
  const run = server.run({ graph_id: 'hangs', input: {} });
  const exchange = await begun;
  server.send(Kind.CANCEL, run.stream, { action: 'interrupt', reason: 'enough' });
  await exchange.until(() => exchange.gone);
  assert.equal((await run.ended).done.status, 'cancelled');
});

test('a request is cancelled by its own signal', async () => {
  const { server } = workers.app;
  const begun = server.begun();
  const run = server.run({ graph_id: 'hangs', input: { x: 1 } });
  const exchange = await begun;
  await exchange.until(() => exchange.gone);
  assert.equal(exchange.gone.reason, 'the caller was cancelled');
  assert.equal((await run.ended).snapshot.values.note, 'AbortError');
});

test('an app talks to its own server', async () => {
  const { server } = workers.app;
  const begun = server.begun();
  const outer = server.request({ target: '/asks' });
  outer.body('', { end: true });
  const exchange = await begun;
  assert.equal(exchange.request.run, 0);
  exchange.respond({ status: 200, headers: [] });
  exchange.body('[]', { end: true });
  assert.deepEqual(JSON.parse((await outer.all()).toString()), { status: 200, text: '[]' });
});

test('a worker without an app passes', async () => {
  const w = await startWorker();
  await w.server.load({});
  assert.equal((await w.server.fetch({ target: '/' })).response.pass, true);
  await w.stop();
});
