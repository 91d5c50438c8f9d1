import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { APP, startWorker } from './support/fakeserver.mjs';

/** @type {Awaited<ReturnType<typeof startWorker>>} */
let w;
/** @type {any} */
let loaded;
before(async () => {
  w = await startWorker();
  loaded = await w.server.load({ counter: './graphs.mjs:counter', asks: './graphs.mjs:asks', remembers: './graphs.mjs:remembers' }, {
    auth: { path: './parts.mjs:auth' }, embed: { spec: './parts.mjs:lengths' }, checkpointer: { path: './parts.mjs:saver' }, store: { path: './parts.mjs:store' }, app: null,
  });
});
after(() => w.stop());

/** @param {string} key @param {any} [more] @param {Uint8Array[]} [body] */
const authenticate = (key, more = {}, body = undefined) => w.server.call({ verb: 'auth.authenticate', method: 'POST', url: 'http://test.local/threads?q=1', path: '/threads', query: 'q=1', headers: [['X-Key', key]], path_params: {}, ...more }, body);
/** @param {string} event @param {any} [value] */
const authorize = (event, value = {}) => w.server.call({ verb: 'auth.authorize', user: { identity: 'ann', permissions: ['p'] }, resource: event.split(':')[0], action: event.split(':')[1], value });

test('LOADED tells of every part', () => {
  assert.deepEqual(loaded.parts.auth, { ok: true, handlers: ['threads:create', 'threads', '*:search', 'store:put', 'store:get', 'crons:read', 'crons:update', 'crons:delete', '*'], authenticates: true });
  assert.deepEqual(loaded.parts.embed, { ok: true });
  assert.deepEqual(loaded.parts.checkpointer, { ok: true, methods: ['adelete_for_runs'] });
  assert.deepEqual(loaded.parts.store, { ok: true });
  assert.ok(!('app' in loaded.parts));
});

test('a user is a string or an object, completed', async () => {
  assert.deepEqual((await authenticate('string')).result, { identity: 'ann', display_name: 'ann', is_authenticated: true, permissions: [] });
  assert.deepEqual((await authenticate('object')).result, { identity: 'bob', display_name: 'bob', is_authenticated: true, permissions: ['read'], org: { id: 7 }, seen: ['POST', '/threads', '1'] });
});

test('the request has its body, and survives what is no header', async () => {
  const { result } = await authenticate('body', { headers: [['x-key', 'body'], ['no header', 'x'], ['x-odd', 'ab\u2603\n']] }, [Buffer.from('{"who":"carl"}')]);
  assert.equal(result.identity, 'carl');
  assert.equal((await authenticate('string', { method: 'GET' })).result.identity, 'ann');
});

test('a refusal has its own status and headers', async () => {
  const error = async (/** @type {string} */ key) => (await authenticate(key)).envelope.error;
  assert.deepEqual(await error('teapot'), { error: 'Error', message: 'short and stout', code: 'http', status: 418, headers: [['x-pot', 'tea']] });
  assert.deepEqual(await error('unknown'), { error: 'Error', message: 'Unauthorized', code: 'http', status: 401, headers: [] });
  assert.equal((await error('plain')).status, 401);
  assert.deepEqual([(await error('asserts')).status, (await error('asserts')).error], [401, 'AssertionError']);
});

test('a mistake of the handler is none of the client\'s', async () => {
  const error = async (/** @type {string} */ key) => (await authenticate(key)).envelope.error;
  assert.deepEqual([(await error('mistake')).error, (await error('mistake')).code], ['TypeError', 'internal']);
  assert.match((await error('nobody')).message, /an object of Object without an "identity"/);
});

test('only the most specific handler decides', async () => {
  assert.deepEqual((await authorize('threads:create', { metadata: { a: 1 } })).result, { allow: true, filter: { owner: 'ann' }, value: { metadata: { a: 1, owner: 'ann' } } });
  assert.deepEqual((await authorize('threads:search')).result.filter, { said: 'threads:search threads search p' });
  assert.deepEqual((await authorize('assistants:search')).result.allow, false);
  assert.deepEqual((await authorize('assistants:read', { assistant_id: 'x' })).result, { allow: true, filter: null, value: { assistant_id: 'x' } });
  assert.deepEqual((await authorize('store:put', { namespace: ['n'], key: 'k' })).result, { allow: true, filter: null, value: { namespace: ['ann', 'n'], key: 'k' } });
});

test('a handler refuses with what it throws', async () => {
  assert.deepEqual((await authorize('crons:read')).envelope.error, { error: 'Error', message: 'not now', code: 'http', status: 409, headers: [] });
  assert.equal((await authorize('crons:update')).envelope.error.status, 403);
  assert.match((await authorize('crons:delete')).envelope.error.message, /returned a number: return nothing, true, false or a filter/);
});

test('texts become vectors', async () => {
  assert.deepEqual((await w.server.call({ verb: 'embed.texts', texts: ['a', 'abc'] })).result, [[1, 1], [3, 1]]);
  assert.deepEqual((await w.server.call({ verb: 'embed.texts', texts: [] })).result, []);
});

test('the application\'s own checkpointer keeps threads', async () => {
  const thread_id = randomUUID();
  const { snapshot, done } = await w.server.finish({ graph_id: 'counter', thread_id, input: { x: 1 } });
  assert.deepEqual([done.status, snapshot.values], ['success', { x: 2 }]);
  assert.deepEqual(w.server.operations.filter((op) => op.op.startsWith('checkpoint.')), []);
  const state = async (/** @type {string} */ id) => (await w.server.call({ verb: 'state.get', graph_id: 'counter', config: { configurable: { thread_id: id } } })).result.values;
  await w.server.call({ verb: 'checkpoint.copy_thread', source: thread_id, target: `${thread_id}-copy` });
  await w.server.call({ verb: 'checkpoint.delete_thread', thread_id });
  assert.deepEqual([await state(thread_id), await state(`${thread_id}-copy`)], [{}, { x: 2 }]);
  assert.equal((await w.server.call({ verb: 'checkpoint.delete_for_runs', run_ids: [] })).envelope.ok, true);
  assert.deepEqual((await w.server.call({ verb: 'checkpoint.prune', thread_ids: [] })).envelope.error.code, 'invalid');
});

test('interrupts wait in the application\'s own checkpointer, and in copies', async () => {
  const thread_id = randomUUID();
  const { snapshot } = await w.server.finish({ graph_id: 'asks', thread_id, input: {} });
  assert.deepEqual([snapshot.next, snapshot.interrupts.length], [['ask'], 1]);
  await w.server.call({ verb: 'checkpoint.copy_thread', source: thread_id, target: `${thread_id}-copy` });
  const { snapshot: end } = await w.server.finish({ graph_id: 'asks', thread_id: `${thread_id}-copy`, command: { resume: 'yes' } });
  assert.deepEqual(end.values, { x: 1, note: 'yes' });
});

test('the application\'s own store answers runs and the server', async () => {
  await w.server.finish({ graph_id: 'remembers', input: { x: 5 } });
  const batch = async (/** @type {any[]} */ ...ops) => (await w.server.call({ verb: 'store.batch', ops })).result;
  const [{ item }, { items }, { namespaces }, put] = await batch(
    { get: { namespace: ['seen'], key: 'x' } }, { search: { namespace_prefix: ['seen'], limit: 10, offset: 0 } },
    { namespaces: { prefix: ['seen'], limit: 10, offset: 0 } }, { put: { namespace: ['n'], key: 'k', value: { a: 1 } } });
  assert.deepEqual([item.value, items.length, namespaces, put], [{ x: 5 }, 1, [['seen']], {}]);
  assert.match(item.created_at, /^\d{4}-/);
  assert.equal((await batch({ get: { namespace: ['n'], key: 'none' } }))[0].item, null);
});

test('parts are closed when the server goes', async () => {
  const other = await startWorker();
  await other.server.load({}, { checkpointer: { path: './parts.mjs:saver' }, store: { path: './parts.mjs:store' } });
  await other.stop();
  assert.match(other.output(), /saver closed/);
  assert.match(other.output(), /store closed/);
});

test('what cannot be loaded is told per part, in a sentence', async () => {
  const failing = async (/** @type {any} */ parts) => {
    const other = await startWorker();
    const said = await other.server.load({ counter: './graphs.mjs:counter' }, parts);
    assert.deepEqual(said.graphs, { counter: { ok: true, factory: false } });
    await other.stop();
    return Object.fromEntries(Object.entries(said.parts).map(([name, part]) => [name, part.ok || part.error.message]));
  };
  const said = await failing({ auth: { path: './parts.mjs:notAuth' }, app: { path: './parts.mjs:notAuth' }, embed: { spec: './parts.mjs:notAuth' }, checkpointer: { path: './parts.mjs:lame' }, store: { path: './parts.mjs:typo' } });
  assert.match(said.auth, /an object of Object; an Auth object of @langchain\/langgraph-sdk\/auth is needed/);
  assert.match(said.app, /a Hono app, or an object or function that answers fetch\(request\), is needed/);
  assert.match(said.embed, /a function of texts or an Embeddings object is needed/);
  assert.match(said.checkpointer, /lacks putWrites, deleteThread/);
  assert.match(said.store, /has no export "typo"/);
  const other = await failing({ auth: { path: './parts.mjs:silent' }, embed: { spec: 'openai:text-embedding-3-small' }, checkpointer: { path: null, serde: { allowed_json_modules: [] } } });
  assert.equal(other.auth, true);
  assert.match(other.embed, /"openai:text-embedding-3-small" needs the package @langchain\/openai: add it/);
  assert.equal(other.checkpointer, true);
});

test('calls without their part are refused', async () => {
  const other = await startWorker();
  await other.server.load({}, { auth: { path: './parts.mjs:silent' } });
  const code = async (/** @type {string} */ verb) => (await other.server.call({ verb, method: 'GET', headers: [] })).envelope.error;
  for (const verb of ['auth.authenticate', 'embed.texts', 'checkpoint.prune', 'store.batch', 'toString']) assert.equal((await code(verb)).code, 'invalid', verb);
  assert.match((await code('embed.texts')).message, /"store.index.embed"/);
  await other.stop();
});

test('parts need no graphs beside them, nor their library', async (t) => {
  const cwd = await realpath(await mkdtemp(path.join(tmpdir(), 'slipway-')));
  t.after(() => rm(cwd, { recursive: true }));
  await writeFile(path.join(cwd, 'package.json'), '{"type":"module"}');
  await writeFile(path.join(cwd, 'auth.js'), 'export const auth = { "~handlerCache": { authenticate: () => "ann" } }; export default (request) => new Response("app");');
  const other = await startWorker({ cwd });
  const { parts } = await other.server.load({}, { auth: { path: './auth.js:auth' }, app: { path: './auth.js' } });
  assert.deepEqual([parts.auth.ok, parts.app.ok], [true, true]);
  assert.equal((await other.server.call({ verb: 'auth.authenticate', method: 'GET', url: 'http://h/', headers: null })).result.identity, 'ann');
  assert.equal((await other.server.fetch({ target: '/' })).body.toString(), 'app');
  assert.match((await other.server.call({ verb: 'state.get', graph_id: 'a', config: {} })).envelope.error.message, /"a" has not been loaded/);
  await other.stop();
});

test('models of a provider come from its package; Embeddings objects are taken', async (t) => {
  const cwd = await realpath(await mkdtemp(path.join(tmpdir(), 'slipway-')));
  t.after(() => rm(cwd, { recursive: true }));
  const packages = path.join(cwd, 'node_modules', '@langchain');
  await mkdir(path.join(packages, 'openai'), { recursive: true });
  for (const name of ['core', 'langgraph', 'langgraph-checkpoint']) await symlink(path.join(APP, '..', '..', 'node_modules', '@langchain', name), path.join(packages, name));
  await writeFile(path.join(packages, 'openai', 'package.json'), '{"name":"@langchain/openai","type":"module","exports":"./index.js"}');
  await writeFile(path.join(packages, 'openai', 'index.js'), 'export class OpenAIEmbeddings { constructor({ model }) { this.n = model.length; } async embedDocuments(texts) { return texts.map(() => Float32Array.of(this.n, 0.5)); } }');
  await writeFile(path.join(cwd, 'package.json'), '{"type":"module"}');
  const other = await startWorker({ cwd });
  const said = await other.server.load({}, { embed: { spec: 'openai:ada' } });
  assert.deepEqual(said.parts.embed, { ok: true });
  assert.deepEqual((await other.server.call({ verb: 'embed.texts', texts: ['x'] })).result, [[3, 0.5]]);
  await other.stop();
  const third = await startWorker();
  await third.server.load({}, { embed: { spec: './parts.mjs:embeddings' } });
  assert.equal((await third.server.call({ verb: 'embed.texts', texts: ['x', 'y'] })).result.length, 2);
  await third.stop();
});
