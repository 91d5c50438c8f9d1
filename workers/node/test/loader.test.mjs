import assert from 'node:assert/strict';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { nearest, parseSpec } from '../src/loader.mjs';
import { APP, startWorker } from './support/fakeserver.mjs';

test('specs name a file and an export', () => {
  assert.deepEqual(parseSpec('./a/b.ts:graph'), { file: './a/b.ts', name: 'graph' });
  assert.deepEqual(parseSpec('./a/b.ts'), { file: './a/b.ts', name: 'default' });
});

test('the nearest name is found, a far one is not', () => {
  assert.equal(nearest('make_grpah', ['state', 'make_graph']), 'make_graph');
  assert.equal(nearest('graph', ['builder', 'x']), undefined);
});

test('every form of export is loaded and runs', async (t) => {
  const w = await startWorker();
  t.after(() => w.stop());
  const forms = ['counter', 'builder', 'owned', 'promised', 'agentLike', 'factory', 'doubled', 'default'];
  const loaded = await w.server.load({ ...Object.fromEntries(forms.map((form) => [form, `./graphs.mjs:${form}`])), bare: './graphs.mjs', common: './common.cjs:graph' });
  for (const form of [...forms, 'bare', 'common']) {
    assert.deepEqual(loaded.graphs[form], { ok: true, factory: form === 'factory' }, form);
    const { done } = await w.server.finish({ graph_id: form, input: { x: 1 } });
    assert.equal(done.status, 'success', form);
  }
  assert.deepEqual(loaded.warnings, ['graph "owned" is compiled with its own checkpointer; the server\'s is used instead']);
  const stored = w.server.operations.filter((op) => op.op === 'checkpoint.put' && op.metadata.graph_id === 'owned');
  assert.ok(stored.length > 0, 'the server stores what the graph with its own checkpointer writes');
});

test('what cannot be loaded is told per graph, in a sentence', async (t) => {
  const w = await startWorker();
  t.after(() => w.stop());
  const { graphs } = await w.server.load({ fine: './graphs.mjs:counter', typo: './graphs.mjs:cuonter', none: './nowhere.mjs:graph', wrong: './graphs.mjs:notAGraph', broken: './broken.mjs:graph', dependency: './missing-import.mjs', plain: './typed.ts:graph' });
  const message = (/** @type {string} */ id) => graphs[id].error.message;
  assert.deepEqual(graphs.fine, { ok: true, factory: false });
  assert.equal(message('typo'), './graphs.mjs has no export "cuonter" (did you mean "counter"?)');
  assert.match(message('none'), /^cannot load \.\/nowhere\.mjs: there is no such file/);
  assert.match(message('wrong'), /^\.\/graphs\.mjs export "notAGraph" is no graph but an object of Object; export /);
  assert.match(message('broken'), /^cannot load \.\/broken\.mjs: SyntaxError: /);
  assert.match(message('dependency'), /^cannot load \.\/missing-import\.mjs: Error: Cannot find package 'no-such-package'/);
  assert.match(message('plain'), /install tsx/);
  assert.ok(graphs.dependency.error.trace.includes('no-such-package'));
});

test('TypeScript is loaded through the loader of the process', async (t) => {
  const w = await startWorker({ node: ['--import', 'tsx'] });
  t.after(() => w.stop());
  const { graphs } = await w.server.load({ typed: './typed.ts:graph' });
  assert.deepEqual(graphs.typed, { ok: true, factory: false });
  const { snapshot } = await w.server.finish({ graph_id: 'typed', input: { x: 1 } });
  assert.deepEqual(snapshot.values, { x: 2 });
});

test('there is one copy of the library, whoever brings another', async (t) => {
  const cwd = await realpath(await mkdtemp(path.join(tmpdir(), 'slipway-')));
  t.after(() => rm(cwd, { recursive: true }));
  await symlink(path.join(APP, '..', '..', 'node_modules'), path.join(cwd, 'node_modules'));
  const other = path.join(cwd, 'lib', 'node_modules', '@langchain', 'langgraph');
  await mkdir(other, { recursive: true });
  await writeFile(path.join(other, 'package.json'), '{"name":"@langchain/langgraph","version":"0.0.1","type":"module","exports":"./index.js"}');
  await writeFile(path.join(other, 'index.js'), 'throw new Error("the other copy")');
  await writeFile(path.join(cwd, 'package.json'), '{"type":"module"}');
  await writeFile(path.join(cwd, 'lib', 'graph.mjs'), "import { Annotation, StateGraph } from '@langchain/langgraph';\nexport const graph = new StateGraph(Annotation.Root({ x: Annotation() })).addNode('a', () => ({})).addEdge('__start__', 'a').compile();\n");
  const w = await startWorker({ cwd });
  assert.deepEqual((await w.server.load({ a: './lib/graph.mjs:graph' })).graphs, { a: { ok: true, factory: false } });
  await w.stop();
});

test('an application without the library says so', async (t) => {
  const cwd = await mkdtemp(path.join(tmpdir(), 'slipway-'));
  const w = await startWorker({ cwd });
  t.after(async () => { await w.stop(); await rm(cwd, { recursive: true }); });
  assert.deepEqual(w.hello.versions, { node: process.versions.node, langgraph: null, checkpoint: null, core: null });
  const { graphs } = await w.server.load({ a: './a.mjs:graph' });
  assert.match(graphs.a.error.message, /^the package @langchain\/langgraph is not installed in .*; add it/);
});

test('a worker whose server is gone ends at once', async () => {
  const w = await startWorker();
  w.server.close();
  assert.deepEqual(await w.exited, { code: 0, signal: null });
});

test('a worker that reads garbage ends with an error', async () => {
  const w = await startWorker();
  w.server.garbage();
  assert.deepEqual(await w.exited, { code: 1, signal: null });
  assert.match(w.output(), /the link to the server failed/);
});
