import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { startWorker } from './support/fakeserver.mjs';

/** @type {Awaited<ReturnType<typeof startWorker>>} */
let w;
before(async () => {
  w = await startWorker();
  await w.server.load(Object.fromEntries(['trivial', 'parent', 'asks', 'tokens'].map((name) => [name, `./samples.mjs:${name}`])));
});
after(() => w.stop());

/** Members that say where and for whom a graph runs. */
const LOCAL = new Set(['user-agent', 'langgraph_api_url', 'langgraph_plan', 'langgraph_host', 'langgraph_version', 'assistant_id', 'graph_id']);

/** @typedef {[event: string, data: any]} Event */

/** The frames of a captured stream. @param {string} name @returns {Event[]} */
function captured(name) {
  const lines = readFileSync(new URL(`./samples/${name}.txt`, import.meta.url), 'utf8').split('\n');
  const events = lines.filter((line) => line.startsWith('event: ')).map((line) => line.slice(7));
  const datas = lines.filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6)));
  return events.map((event, i) => [event, datas[i]]);
}

/** Ids and times are arbitrary. @param {any} value @returns {any} */
function plain(value) {
  if (typeof value === 'string') return value.replace(/(?:run-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b/g, '<id>').replace(/^\d{4}-\d\d-\d\dT.*/, '<time>');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !LOCAL.has(key)).map(([key, member]) => [plain(key), plain(member)]));
}

/** What a client of the captured server got of a frame: less of the address of a checkpoint. @param {Event} frame @returns {Event} */
function asCaptured([event, data]) {
  if (event !== 'checkpoints') return [event, data];
  const { values, metadata, next } = data;
  return [event, { values, metadata, next }];
}

/** @param {string} sample @param {any} request @param {(frame: Event) => boolean} [sent] which frames of the capture are sent here */
async function same(sample, request, sent = () => true) {
  const want = captured(sample).filter((frame) => frame[0] !== 'metadata' && sent(frame));
  const { frames } = await w.server.finish(request);
  const got = frames.map(({ event, data }) => asCaptured([event, data]));
  assert.deepEqual(got.map(([event]) => plain(event)), want.map(([event]) => plain(event)), sample);
  assert.deepEqual(got.map(plain), want.map(plain), sample);
}

test('all plain modes are streamed as captured', () => same('all-modes', { graph_id: 'trivial', input: { x: 1 }, stream_mode: ['values', 'updates', 'events', 'checkpoints', 'debug', 'tasks'] }));

test('subgraphs are streamed as captured, without the checkpoints nobody asked for', () => {
  return same('subgraphs', { graph_id: 'parent', input: { x: 1 }, stream_mode: ['values', 'updates', 'custom', 'tasks'], subgraphs: true }, ([event]) => !event.startsWith('checkpoints'));
});

test('an interrupt is streamed as captured', () => same('interrupt', { graph_id: 'asks', input: {}, stream_mode: ['values', 'updates'] }));

test('messages are streamed as captured', () => same('messages', { graph_id: 'tokens', input: { messages: [{ role: 'user', content: 'hi' }] }, stream_mode: ['messages', 'messages-tuple'] }));
