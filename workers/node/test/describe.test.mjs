import assert from 'node:assert/strict';
import { cp, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { APP, startWorker } from './support/fakeserver.mjs';

/** So long that the answer is the compiler's also on a machine that is busy. */
const PATIENT = { LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS: '600000' };

/** @type {Awaited<ReturnType<typeof startWorker>>} */
let w;
/** @param {any} worker @param {string} verb @param {string} graph_id @param {any} [more] */
const ask = async (worker, verb, graph_id, more = {}) => (await worker.server.call({ verb, graph_id, config: {}, ...more })).result;
const NAMES = ['ofStateSchema', 'ofZod4', 'ofZod3', 'ofOther', 'bad'];

before(async () => {
  w = await startWorker({ node: ['--import', 'tsx'], env: PATIENT });
  const { graphs } = await w.server.load({ ...Object.fromEntries(NAMES.map((name) => [name, `./schemas.mjs:${name}`])), counter: './graphs.mjs:counter', parent: './graphs.mjs:parent', nests: './graphs.mjs:nests', chooses: './graphs.mjs:chooses', rich: './typed.ts:rich', typed: './typed.ts:graph', made: './typed.ts:factory' });
  for (const [id, outcome] of Object.entries(graphs)) assert.ok(outcome.ok, id);
});
after(() => w.stop());

test('a schema object tells its schemas itself', async () => {
  const found = await ask(w, 'graph.schemas', 'ofStateSchema');
  assert.equal(found.state_schema.properties.count.type, 'number');
  assert.equal(found.input_schema.properties.count.type, 'string');
  assert.equal(found.state_schema.properties.messages.langgraph_type, 'messages');
  assert.deepEqual(found.output_schema, found.state_schema);
  assert.ok(!('config_schema' in found));
});

test('zod schemas know reducers and what the library notes of them', async () => {
  const found = await ask(w, 'graph.schemas', 'ofZod4');
  assert.equal(found.state_schema.properties.log.type, 'array');
  assert.deepEqual(found.state_schema.properties.topic, { type: 'string', description: 'about what' });
  assert.equal(found.state_schema.properties.messages.langgraph_type, 'messages');
  assert.deepEqual(Object.keys(found.input_schema.properties), ['topic']);
  assert.deepEqual(Object.keys(found.output_schema.properties), ['log']);
  assert.deepEqual(found.context_schema.properties.model, { type: 'string', enum: ['a', 'b'] });
  assert.deepEqual(found.config_schema, found.context_schema);
});

test('zod 3 and other converters are understood', async () => {
  const { state_schema, input_schema } = await ask(w, 'graph.schemas', 'ofZod3');
  assert.deepEqual(state_schema.properties, { topic: { type: 'string' }, n: { type: 'number' } });
  assert.ok(!input_schema.required?.length);
  assert.deepEqual((await ask(w, 'graph.schemas', 'ofOther')).state_schema, { type: 'object', title: 'own' });
});

test('what cannot be derived is left out', async () => {
  assert.deepEqual(await ask(w, 'graph.schemas', 'counter'), { state_schema: {} });
  assert.deepEqual(await ask(w, 'graph.schemas', 'bad'), { state_schema: {} });
});

test('types are read from the TypeScript source', async () => {
  const { state_schema, input_schema, output_schema, context_schema, config_schema } = await ask(w, 'graph.schemas', 'rich');
  const { messages, mood, tree, maybe, last, on } = state_schema.properties;
  assert.deepEqual(messages, { type: 'array', items: { $ref: '#/definitions/BaseMessage' }, langgraph_type: 'messages' });
  assert.deepEqual(mood, { type: 'string', enum: ['good', 'bad'], description: 'How it goes.' });
  assert.deepEqual(tree, { $ref: '#/definitions/Tree' });
  assert.deepEqual(state_schema.definitions.Tree, { type: 'object', properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/definitions/Tree' } } }, required: ['name', 'children'] });
  assert.deepEqual(maybe, {
    type: 'object',
    properties: {
      when: { type: 'string', format: 'date-time' }, note: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } },
      pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }], minItems: 2, maxItems: 2 },
      scores: { type: 'object', properties: {}, additionalProperties: { type: 'number' } },
    },
    required: ['when', 'tags', 'pair', 'scores'],
  });
  assert.deepEqual(last, { $ref: '#/definitions/BaseMessage' });
  assert.deepEqual(on, { anyOf: [{ type: 'null' }, { type: 'boolean' }] });
  assert.ok(!input_schema.required && 'mood' in input_schema.properties);
  assert.deepEqual(Object.keys(output_schema.properties), Object.keys(state_schema.properties));
  assert.deepEqual(context_schema.properties, { model: { type: 'string' } });
  assert.deepEqual(config_schema, context_schema);
});

test('factories are read like the graphs they return', async () => {
  assert.deepEqual(await ask(w, 'graph.schemas', 'made'), await ask(w, 'graph.schemas', 'typed'));
  assert.deepEqual((await ask(w, 'graph.schemas', 'typed')).state_schema, { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] });
});

test('graphs are drawn, their subgraphs when asked', async () => {
  const flat = await ask(w, 'graph.draw', 'parent', { xray: false });
  assert.deepEqual(flat.nodes.map((/** @type {any} */ n) => [n.id, n.type]), [['__start__', 'schema'], ['first', 'runnable'], ['sub', 'runnable'], ['__end__', 'schema']]);
  assert.deepEqual(flat.edges[0], { conditional: false, source: '__start__', target: 'first' });
  const ids = async (/** @type {any} */ xray) => (await ask(w, 'graph.draw', 'nests', { xray })).nodes.map((/** @type {any} */ n) => n.id);
  assert.deepEqual(await ids(false), ['__start__', 'sub', '__end__']);
  assert.deepEqual(await ids(true), ['__start__', 'sub:one', 'sub:two', '__end__']);
  assert.ok((await ask(w, 'graph.draw', 'chooses', {})).edges.some((/** @type {any} */ e) => e.conditional === true));
});

test('subgraphs are found by namespace', async () => {
  assert.deepEqual(Object.keys(await ask(w, 'graph.subgraphs', 'parent', { namespace: null, recurse: true })), ['sub']);
  assert.deepEqual(await ask(w, 'graph.subgraphs', 'parent', { namespace: 'sub' }), { sub: { state_schema: {} } });
  assert.deepEqual(await ask(w, 'graph.subgraphs', 'parent', { namespace: 'nowhere' }), {});
});

/** An application of its own with the test's packages. @param {any} t @param {string} source */
async function application(t, source) {
  const dir = await realpath(await mkdtemp(path.join(tmpdir(), 'slipway-')));
  t.after(() => rm(dir, { recursive: true }));
  await symlink(path.join(APP, '..', '..', 'node_modules'), path.join(dir, 'node_modules'));
  await cp(path.join(APP, 'typed-tree.ts'), path.join(dir, 'typed-tree.ts'));
  await writeFile(path.join(dir, 'package.json'), '{"type":"module"}');
  await writeFile(path.join(dir, 'agent.ts'), source);
  return dir;
}

/** @param {string} type */
const agentOf = (type) => `import { Annotation, StateGraph } from '@langchain/langgraph';
import type { Tree } from './typed-tree.js';
export const graph = new StateGraph(Annotation.Root({ x: Annotation<${type}>(), t: Annotation<Tree>() })).addNode('a', () => ({})).addEdge('__start__', 'a').compile();
`;

/** @param {string} cwd @param {Record<string, string>} env @returns {Promise<any>} */
async function schemasIn(cwd, env) {
  const worker = await startWorker({ cwd, node: ['--import', 'tsx'], env: { ...PATIENT, ...env } });
  assert.deepEqual((await worker.server.load({ a: './agent.ts:graph' })).graphs.a, { ok: true, factory: false });
  const found = await ask(worker, 'graph.schemas', 'a');
  await worker.stop();
  return { found, logs: worker.server.logs };
}

test('what has been read is kept until a file changes that it depends on', async (t) => {
  const cwd = await application(t, agentOf('string'));
  const cache = path.join(cwd, 'cache');
  const first = await schemasIn(cwd, { SLIPWAY_SCHEMA_CACHE: cache });
  assert.deepEqual(first.found.state_schema.properties.x, { type: 'string' });
  const kept = await readdir(cache);
  assert.equal(kept.length, 1);
  // With a limit that no compiler meets, an answer can only be one that was kept.
  const second = await schemasIn(cwd, { SLIPWAY_SCHEMA_CACHE: cache, LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS: '1' });
  assert.deepEqual(second.found, first.found);
  await writeFile(path.join(cwd, 'typed-tree.ts'), 'export interface Tree { leaf: number }\n');
  const third = await schemasIn(cwd, { SLIPWAY_SCHEMA_CACHE: cache });
  assert.deepEqual(third.found.state_schema.properties.t.properties, { leaf: { type: 'number' } });
  assert.deepEqual(await readdir(cache), kept);
});

test('a compiler that takes too long is stopped, with a word', async (t) => {
  const cwd = await application(t, agentOf('string'));
  const { found, logs } = await schemasIn(cwd, { LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS: '1' });
  assert.deepEqual(found, { state_schema: {} });
  assert.match(logs.map((/** @type {any} */ log) => log.message).join(), /longer than 1 ms \(LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS\)/);
});
