import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';

import { Kind } from '../src/frames.mjs';
import { startWorker } from './support/fakeserver.mjs';

const NAMES = ['counter', 'factory', 'doubled', 'chat', 'hushed', 'asks', 'asksTwice', 'parent', 'parentAsks', 'parentFails', 'fails', 'slow', 'blocks', 'steps', 'remembers', 'fan', 'tools', 'cached', 'odd', 'wordless', 'unreadable', 'verbose', 'jumps', 'crashing', 'leaves', 'rushes', 'talks', 'fetches', 'waits', 'whose'];

/** @type {Awaited<ReturnType<typeof startWorker>>} */
let w;
/** @type {(request: any) => Promise<import('./support/fakeserver.mjs').Ended>} */
const finish = (request) => w.server.finish(request);

before(async () => {
  w = await startWorker();
  const loaded = await w.server.load(Object.fromEntries(NAMES.map((name) => [name, `./graphs.mjs:${name}`])));
  assert.deepEqual(loaded, { graphs: Object.fromEntries(NAMES.map((name) => [name, { ok: true, factory: ['factory', 'unreadable', 'whose'].includes(name) }])), parts: {}, warnings: [] });
});
after(() => w.stop());

/** @param {import('./support/fakeserver.mjs').Ended} ended */
const events = (ended) => ended.frames.map((frame) => frame.event);
/** @param {import('./support/fakeserver.mjs').Ended} ended @param {string} event */
const data = (ended, event) => ended.frames.filter((frame) => frame.event === event).map((frame) => frame.data);
/** The event names without the ids of tasks. @param {import('./support/fakeserver.mjs').Ended} ended */
const plain = (ended) => events(ended).map((event) => event.replace(/:[0-9a-f-]{36}/g, ':id'));
/** @param {any} snapshot */
const known = ({ values, next, tasks, interrupts }) => ({ values, next, tasks: tasks.length, interrupts: interrupts.map((/** @type {any} */ i) => i.value) });

test('hello names the versions of the application', () => {
  assert.deepEqual(w.hello.versions, { node: process.versions.node, langgraph: '1.4.18', checkpoint: '1.1.5', core: '1.2.13' });
  assert.equal(w.hello.protocol, 1);
  assert.equal(w.hello.language, 'node');
});

test('a run ends with its state, made durable by TELLs', async () => {
  const run = w.server.run({ graph_id: 'counter', input: { x: 1 }, stream_mode: [], config: { configurable: { thread_id: 't-plain' } }, thread_id: 't-plain' });
  const { frames, done, snapshot } = await run.ended;
  assert.deepEqual(frames, []);
  assert.deepEqual(done, { status: 'success', retriable: false });
  assert.deepEqual(known(snapshot), { values: { x: 2 }, next: [], tasks: 0, interrupts: [] });
  const mine = w.server.operations.filter((op) => op.thread_id === 't-plain');
  assert.deepEqual([...new Set(mine.filter((op) => op.op !== 'checkpoint.get').map((op) => op.told))], [true]);
  assert.ok(mine.every((op) => op.run === run.stream));
});

test('the cheap snapshot is what the graph itself says', async () => {
  for (const graph_id of ['counter', 'parent', 'chat', 'doubled']) {
    const thread_id = randomUUID();
    const input = graph_id === 'chat' ? { messages: [{ role: 'user', content: 'hi', id: 'm1' }] } : { x: 1 };
    const { snapshot } = await finish({ graph_id, thread_id, input });
    const { result } = await w.server.call({ verb: 'state.get', graph_id, config: { configurable: { thread_id } }, subgraphs: false });
    assert.deepEqual(snapshot, result, graph_id);
  }
});

test('metadata of the run stands in config and checkpoints', async () => {
  const { snapshot } = await finish({ graph_id: 'counter', input: { x: 1 }, run_id: '01a1fd7c-98a8-70ab-ba0d-aed1b1489cf9', attempt: 2, config: { metadata: { mine: 'yes', deep: { no: 1 } } } });
  const { metadata } = snapshot;
  const got = { run_id: metadata.run_id, attempt: metadata.run_attempt, host: metadata.langgraph_host, version: metadata.langgraph_version, mine: metadata.mine, deep: metadata.deep, step: metadata.step };
  assert.deepEqual(got, { run_id: '01a1fd7c-98a8-70ab-ba0d-aed1b1489cf9', attempt: 2, host: 'self-hosted', version: '1.4.18', mine: 'yes', deep: undefined, step: 1 });
});

test('durability sync waits for every write', async () => {
  const run = w.server.run({ graph_id: 'counter', input: { x: 1 }, durability: 'sync' });
  await run.ended;
  const writes = w.server.operations.filter((op) => op.run === run.stream && op.op.startsWith('checkpoint.put'));
  assert.ok(writes.length > 0);
  assert.ok(writes.every((op) => !op.told));
});

test('durability exit writes one checkpoint', async () => {
  const run = w.server.run({ graph_id: 'steps', input: { n: 1 }, durability: 'exit' });
  const { snapshot } = await run.ended;
  assert.equal(w.server.operations.filter((op) => op.run === run.stream && op.op === 'checkpoint.put').length, 1);
  assert.equal(snapshot.values.log.length, 5);
});

test('all plain modes come, and only those asked for', async () => {
  const ended = await finish({ graph_id: 'counter', input: { x: 1 }, stream_mode: ['values', 'updates', 'events', 'checkpoints', 'debug', 'tasks'] });
  assert.deepEqual([...new Set(events(ended))].sort(), ['checkpoints', 'debug', 'events', 'tasks', 'updates', 'values']);
  assert.deepEqual(data(ended, 'values'), [{ x: 1 }, { x: 2 }]);
  assert.deepEqual(data(ended, 'updates'), [{ add: { x: 2 } }]);
  const named = data(ended, 'events').map((e) => `${e.event} ${e.name}`);
  assert.deepEqual(named, ['on_chain_start LangGraph', 'on_chain_start add', 'on_chain_end add', 'on_chain_end LangGraph']);
  const only = await finish({ graph_id: 'counter', input: { x: 1 }, stream_mode: ['updates'] });
  assert.deepEqual(events(only), ['updates']);
});

test('debug and checkpoints address their checkpoint and hide the library\'s own', async () => {
  const ended = await finish({ graph_id: 'counter', thread_id: 't-debug', input: { x: 1 }, stream_mode: ['debug', 'checkpoints'], config: { configurable: { langgraph_auth_user: { token: 's3cret' } } } });
  const [first, second] = data(ended, 'checkpoints');
  assert.equal(first.parent_checkpoint, null);
  assert.deepEqual(second.parent_checkpoint, first.checkpoint);
  assert.deepEqual(Object.keys(first.checkpoint).sort(), ['checkpoint_id', 'checkpoint_map', 'checkpoint_ns', 'thread_id']);
  assert.ok(!/"__pregel_[a-z]+":|s3cret/.test(JSON.stringify(data(ended, 'checkpoints'))));
  assert.deepEqual(data(ended, 'debug').map((d) => d.type), ['checkpoint', 'checkpoint', 'task', 'task_result', 'checkpoint']);
});

test('messages are derived: metadata once, partials grow, complete once', async () => {
  const ended = await finish({ graph_id: 'chat', input: { messages: [{ role: 'user', content: 'hi' }] }, stream_mode: ['messages', 'messages-tuple', 'custom'] });
  assert.deepEqual(events(ended).filter((e) => e !== 'custom'), ['messages/complete', 'messages/metadata', 'messages/partial', 'messages', 'messages/partial', 'messages', 'messages/partial', 'messages', 'messages/complete']);
  assert.deepEqual(data(ended, 'messages/partial').map(([m]) => m.content), ['a', 'ab', 'abc']);
  assert.deepEqual(data(ended, 'messages').map(([m, meta]) => [m.content, m.type, meta.langgraph_node]), [['a', 'ai', 'llm'], ['b', 'ai', 'llm'], ['c', 'ai', 'llm']]);
  assert.deepEqual(data(ended, 'messages/complete').map(([m]) => [m.type, m.content]), [['human', 'hi'], ['ai', 'abc']]);
  assert.deepEqual(data(ended, 'custom'), [{ progress: 100 }]);
});

test('messages come through events, too', async () => {
  const ended = await finish({ graph_id: 'chat', input: { messages: [{ role: 'user', content: 'hi' }] }, stream_mode: ['events', 'messages-tuple'] });
  assert.deepEqual(data(ended, 'messages').map(([m]) => m.content), ['a', 'b', 'c']);
  assert.equal(data(ended, 'events').filter((e) => e.event === 'on_chat_model_stream').length, 3);
});

test('what is tagged nostream is not streamed', async () => {
  const ended = await finish({ graph_id: 'hushed', input: { messages: [{ role: 'user', content: 'hi' }] }, stream_mode: ['messages-tuple'] });
  assert.deepEqual(data(ended, 'messages').map(([m]) => m.content), ['aloud']);
});

test('frames of subgraphs carry their namespace', async () => {
  const ended = await finish({ graph_id: 'parent', input: { x: 1 }, stream_mode: ['values', 'updates', 'custom'], subgraphs: true });
  assert.deepEqual(plain(ended), ['values', 'updates', 'values', 'values|sub:id', 'custom|sub:id', 'updates|sub:id', 'values|sub:id', 'updates', 'values']);
  const without = await finish({ graph_id: 'parent', input: { x: 1 }, stream_mode: ['values', 'updates'] });
  assert.deepEqual(events(without), ['values', 'updates', 'values', 'updates', 'values']);
});

test('lifecycle tells how each subgraph starts and ends', async () => {
  const tell = async (/** @type {string} */ graph_id) => (await finish({ graph_id, input: { x: 1 }, stream_mode: ['lifecycle'] })).frames.map((f) => `${f.event.replace(/:.*/, '')} ${f.data.event} ${f.data.error?.message ?? ''}`.trim());
  assert.deepEqual(await tell('parent'), ['lifecycle|sub started', 'lifecycle|sub completed']);
  assert.deepEqual(await tell('parentAsks'), ['lifecycle|sub started', 'lifecycle|sub interrupted']);
  assert.deepEqual(await tell('parentFails'), ['lifecycle|sub started', 'lifecycle|sub failed deep boom']);
});

test('tools are streamed', async () => {
  const ended = await finish({ graph_id: 'tools', input: { x: 1 }, stream_mode: ['tools'] });
  assert.deepEqual(data(ended, 'tools').map((t) => [t.event, t.name]), [['on_tool_start', 'adder'], ['on_tool_end', 'adder']]);
});

test('an interrupt ends the run, and a command resumes it', async () => {
  const thread_id = randomUUID();
  const stopped = await finish({ graph_id: 'asks', thread_id, input: {}, stream_mode: ['values', 'updates'] });
  assert.equal(stopped.done.status, 'success');
  assert.deepEqual(known(stopped.snapshot), { values: { x: 1 }, next: ['ask'], tasks: 1, interrupts: [{ q: 'ok?' }] });
  assert.deepEqual(Object.keys(stopped.snapshot.tasks[0]).sort(), ['checkpoint', 'error', 'id', 'interrupts', 'name', 'path', 'result', 'state']);
  assert.deepEqual(events(stopped).slice(-2), ['updates', 'values']);
  assert.deepEqual(data(stopped, 'values').at(-1), { __interrupt__: stopped.snapshot.interrupts });
  const resumed = await finish({ graph_id: 'asks', thread_id, command: { resume: 'yes' } });
  assert.deepEqual(known(resumed.snapshot), { values: { x: 1, note: 'yes' }, next: [], tasks: 0, interrupts: [] });
});

test('several interrupts are answered by id, one after another', async () => {
  const thread_id = randomUUID();
  const { snapshot } = await finish({ graph_id: 'asksTwice', thread_id, input: {} });
  assert.deepEqual(snapshot.interrupts.map((/** @type {any} */ i) => i.value).sort(), ['first?', 'second?']);
  const id = (/** @type {string} */ value) => snapshot.interrupts.find((/** @type {any} */ i) => i.value === value).id;
  const half = await finish({ graph_id: 'asksTwice', thread_id, command: { resume: { [id('second?')]: 'B' } } });
  assert.deepEqual(half.snapshot.interrupts.map((/** @type {any} */ i) => i.value), ['first?']);
  const whole = await finish({ graph_id: 'asksTwice', thread_id, command: { resume: { [id('first?')]: 'A' } } });
  assert.deepEqual(whole.snapshot.values.log.sort(), ['one:A', 'two:B']);
});

test('factories and nodes see the user, checkpoints do not', async () => {
  const thread_id = randomUUID();
  const { snapshot } = await finish({ graph_id: 'whose', thread_id, input: {}, config: { configurable: { langgraph_auth_user: { identity: 'ann', key: 's3cret' }, langgraph_auth_user_id: 'ann' } } });
  assert.equal(snapshot.values.note, 'ann,ann');
  const stored = w.server.operations.filter((op) => op.thread_id === thread_id && op.op.startsWith('checkpoint.put'));
  assert.ok(stored.length > 0 && !/s3cret|langgraph_auth/.test(JSON.stringify([stored, snapshot])));
});

test('strict_resume refuses an interrupt that is not waiting', async () => {
  const thread_id = randomUUID();
  await finish({ graph_id: 'asks', thread_id, input: {} });
  const { done, snapshot } = await finish({ graph_id: 'asks', thread_id, strict_resume: true, command: { resume: { ['0'.repeat(32)]: 'x' } } });
  assert.equal(done.status, 'error');
  assert.equal(done.error.error, 'UnknownInterruptError');
  assert.equal(snapshot, null);
  const empty = await finish({ graph_id: 'asks', thread_id, strict_resume: true, command: { resume: {} } });
  assert.deepEqual([empty.done.error.error, empty.snapshot], ['UnknownInterruptError', null]);
  const good = await finish({ graph_id: 'asks', thread_id, strict_resume: true, command: { resume: 'x' } });
  assert.equal(good.snapshot.values.note, 'x');
});

test('strict_resume goes on from a breakpoint, where no interrupt waits', async () => {
  const thread_id = randomUUID();
  await finish({ graph_id: 'asks', thread_id, input: {}, interrupt_before: ['ask'] });
  const { done, snapshot } = await finish({ graph_id: 'asks', thread_id, strict_resume: true, command: { resume: 'at once' } });
  assert.deepEqual([done.status, snapshot.values.note], ['success', 'at once']);
});

test('strict_resume wants to know which of several interrupts is answered', async () => {
  const thread_id = randomUUID();
  const { snapshot } = await finish({ graph_id: 'asksTwice', thread_id, input: {} });
  const ids = snapshot.interrupts.map((/** @type {any} */ i) => i.id);
  const vague = await finish({ graph_id: 'asksTwice', thread_id, strict_resume: true, command: { resume: 'x' } });
  assert.deepEqual([vague.done.error.error, vague.snapshot], ['UnknownInterruptError', null]);
  const half = await finish({ graph_id: 'asksTwice', thread_id, strict_resume: true, command: { resume: { [ids[0]]: 'x' } } });
  assert.equal(half.done.status, 'success');
  const again = await finish({ graph_id: 'asksTwice', thread_id, strict_resume: true, command: { resume: { [ids[0]]: 'again' } } });
  assert.equal(again.done.error.error, 'UnknownInterruptError');
});

test('strict_resume does not check a replay', async () => {
  const thread_id = randomUUID();
  const { snapshot } = await finish({ graph_id: 'asks', thread_id, input: {} });
  const [{ id }] = snapshot.interrupts;
  await finish({ graph_id: 'asks', thread_id, command: { resume: { [id]: 'first' } } });
  const replayed = await finish({ graph_id: 'asks', thread_id, strict_resume: true, command: { resume: { [id]: 'second' } }, config: { configurable: { checkpoint_id: snapshot.checkpoint.checkpoint_id } } });
  assert.equal(replayed.done.status, 'success');
});

test('breakpoints of the request stop the run', async () => {
  const thread_id = randomUUID();
  const { done, snapshot } = await finish({ graph_id: 'asks', thread_id, input: {}, interrupt_before: ['a'] });
  assert.equal(done.status, 'success');
  assert.deepEqual(snapshot.next, ['a']);
  const on = await finish({ graph_id: 'asks', thread_id, input: null, interrupt_after: '*' });
  assert.deepEqual(on.snapshot.next, ['ask']);
});

test('commands update, go and send', async () => {
  const { snapshot } = await finish({ graph_id: 'fan', thread_id: 't-fan', input: { n: 0 } });
  assert.deepEqual(snapshot.values.log, ['work 1', 'work 2']);
  const gone = await finish({ graph_id: 'fan', thread_id: 't-fan', command: { update: { log: ['told'] }, goto: ['other', { node: 'work', input: { n: 7 } }] } });
  assert.deepEqual(gone.snapshot.values.log.slice(0, 3), ['work 1', 'work 2', 'told']);
  assert.deepEqual(gone.snapshot.values.log.slice(3).sort(), ['other', 'work 7']);
});

test('a run forks from the checkpoint it names', async () => {
  const thread_id = randomUUID();
  await finish({ graph_id: 'asks', thread_id, input: {} });
  await finish({ graph_id: 'asks', thread_id, command: { resume: 'first' } });
  const { result } = await w.server.call({ verb: 'state.history', graph_id: 'asks', config: { configurable: { thread_id } } });
  const waiting = result.find((/** @type {any} */ s) => s.next[0] === 'ask');
  const forked = await finish({ graph_id: 'asks', thread_id, input: null, config: { configurable: { checkpoint_id: waiting.checkpoint.checkpoint_id } } });
  assert.deepEqual(known(forked.snapshot), { values: { x: 1 }, next: ['ask'], tasks: 1, interrupts: [{ q: 'ok?' }] });
  assert.equal(forked.snapshot.parent_checkpoint.checkpoint_id, waiting.checkpoint.checkpoint_id);
  const again = await finish({ graph_id: 'asks', thread_id, command: { resume: 'second' } });
  assert.equal(again.snapshot.values.note, 'second');
});

test('a node that throws fails the run and keeps what was done', async () => {
  const { done, snapshot } = await finish({ graph_id: 'fails', input: {}, stream_mode: ['tasks'] });
  assert.deepEqual(done, { status: 'error', error: { error: 'TypeError', message: 'boom' }, retriable: false });
  assert.deepEqual([snapshot.values, snapshot.next, snapshot.tasks[0].error], [{ x: 1 }, ['b'], 'TypeError: boom']);
});

test('a cancel aborts the signal and keeps finished steps', async () => {
  const run = w.server.run({ graph_id: 'slow', input: {}, stream_mode: ['custom'] });
  assert.equal((await run.frame()).data, 'sleeping');
  w.server.send(Kind.CANCEL, run.stream, { action: 'interrupt', reason: 'enough' });
  const { done, snapshot } = await run.ended;
  assert.equal(done.status, 'cancelled');
  assert.deepEqual([snapshot.values, snapshot.next], [{ x: 1 }, ['sleep']]);
});

test('a cancel does not wait for a node that is deaf to it', async () => {
  const run = w.server.run({ graph_id: 'slow', input: { note: 'deaf' }, stream_mode: ['custom'] });
  await run.frame();
  w.server.send(Kind.CANCEL, run.stream, { action: 'rollback', reason: 'enough' });
  assert.equal((await run.ended).done.status, 'cancelled');
});

test('a worker that is fenced off writes nothing more', async () => {
  const thread_id = randomUUID();
  w.server.refuse = (op) => (op.thread_id === thread_id && op.op === 'checkpoint.put' ? { error: 'Stale', message: 'not yours', code: 'stale' } : undefined);
  const { done, snapshot } = await finish({ graph_id: 'counter', thread_id, input: { x: 1 }, durability: 'sync' });
  w.server.refuse = () => undefined;
  assert.equal(done.status, 'cancelled');
  assert.equal(snapshot, null);
});

test('a failure of storage is retriable', async () => {
  const thread_id = randomUUID();
  w.server.refuse = (op) => (op.thread_id === thread_id ? { error: 'DiskFull', message: 'no space left', code: 'internal' } : undefined);
  const { done } = await finish({ graph_id: 'counter', thread_id, input: { x: 1 } });
  w.server.refuse = () => undefined;
  assert.deepEqual([done.status, done.retriable, done.error.error], ['error', true, 'DiskFull']);
});

test('a retry goes on from the last checkpoint', async () => {
  const thread_id = randomUUID();
  const run_id = randomUUID();
  await finish({ graph_id: 'asks', thread_id, run_id, input: { x: 5 }, interrupt_after: ['a'] });
  const { snapshot } = await finish({ graph_id: 'asks', thread_id, run_id, attempt: 2, resume: true, input: { x: 5 } });
  assert.deepEqual(known(snapshot), { values: { x: 1 }, next: ['ask'], tasks: 1, interrupts: [{ q: 'ok?' }] });
});

test('a temporary run leaves nothing behind', async () => {
  const run = w.server.run({ graph_id: 'counter', input: { x: 1 }, temporary: true });
  const { snapshot } = await run.ended;
  assert.deepEqual(snapshot, { values: { x: 2 }, interrupts: [] });
  assert.deepEqual(w.server.operations.filter((op) => op.run === run.stream), []);
});

test('chunks wait for credit', async () => {
  const run = w.server.run({ graph_id: 'steps', input: { n: 1 }, stream_mode: ['custom'], credit: 2 });
  await run.frame();
  await run.frame();
  const next = run.frame();
  w.server.send(Kind.CREDIT, run.stream, { chunks: 64 });
  await next;
  assert.equal((await run.ended).frames.length, 5);
});

test('without credit the graph stops, between its steps and between the tokens of a model', async () => {
  for (const [graph_id, mode, op] of [['rushes', 'custom', 'checkpoint.put'], ['talks', 'messages-tuple', 'checkpoint.put_writes']]) {
    const input = graph_id === 'rushes' ? { n: 1 } : { messages: [{ role: 'user', content: 'hi' }] };
    const more = { graph_id, input, stream_mode: [mode], config: { recursion_limit: 100 } };
    const starved = w.server.run({ ...more, credit: 2 });
    await starved.frame();
    const fed = w.server.run(more);
    await fed.ended; // As many steps as the other one would have made meanwhile.
    const done = (/** @type {any} */ run) => w.server.operations.filter((o) => o.run === run.stream && o.op === op).length;
    assert.ok(done(starved) <= done(fed) / 2, `${graph_id}: ${done(starved)} of ${done(fed)}`);
    w.server.send(Kind.CREDIT, starved.stream, { chunks: 1e6 });
    const frames = async (/** @type {any} */ run) => (await run.ended).frames.length;
    assert.equal(await frames(starved), await frames(fed), graph_id);
  }
});

test('a cancel ends what a tool fetches', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {any} */ (server.address());
  const run = w.server.run({ graph_id: 'fetches', input: { note: `http://127.0.0.1:${port}/` } });
  const [, response] = await once(server, 'request');
  w.server.send(Kind.CANCEL, run.stream, { action: 'interrupt', reason: 'enough' });
  await once(response, 'close');
  assert.equal(response.writableFinished, false);
  assert.equal((await run.ended).done.status, 'cancelled');
  server.close();
});

test('a cancel ends a model that is being asked', async () => {
  const run = w.server.run({ graph_id: 'waits', input: { messages: [{ role: 'user', content: 'hi' }] }, stream_mode: ['custom'] });
  await run.frame();
  w.server.send(Kind.CANCEL, run.stream, { action: 'interrupt', reason: 'enough' });
  assert.equal((await run.ended).done.status, 'cancelled');
});

test('a cancel frees a run that waits for credit', async () => {
  const run = w.server.run({ graph_id: 'steps', input: { n: 1 }, stream_mode: ['custom'], credit: 1 });
  await run.frame();
  w.server.send(Kind.CANCEL, run.stream, { action: 'interrupt', reason: 'nobody reads' });
  const { frames } = await run.ended;
  assert.equal(frames.length, 1);
});

test('fifty runs at once do not mix', async () => {
  const runs = Array.from({ length: 50 }, (_, n) => w.server.run({ graph_id: 'steps', thread_id: `mix-${n}`, input: { n }, context: { who: `w${n}` }, stream_mode: ['custom', 'values'] }));
  for (const [n, run] of runs.entries()) {
    const ended = await run.ended;
    assert.deepEqual(ended.snapshot.values.log, Array(5).fill(`${n}:mix-${n}:w${n}`));
    assert.deepEqual(data(ended, 'custom'), Array(5).fill(n));
  }
});

test('a blocked event loop only delays', async () => {
  const blocked = w.server.run({ graph_id: 'blocks', input: { x: 1 } });
  const beside = w.server.run({ graph_id: 'counter', input: { x: 1 } });
  assert.equal((await blocked.ended).snapshot.values.x, 2);
  assert.equal((await beside.ended).snapshot.values.x, 2);
});

test('stray errors of user code end no run', async () => {
  const { done } = await finish({ graph_id: 'crashing', input: {} });
  assert.equal(done.status, 'success');
  const logged = w.server.logs.filter((l) => l.message.startsWith('an error escaped')).map((l) => l.message.split('\n')[0].split(': ')[1]);
  assert.deepEqual(logged.sort(), ['lost', 'stray']);
});

test('what a cancel aborts is no error of the graph', async () => {
  const before = w.server.logs.length;
  const run = w.server.run({ graph_id: 'leaves', input: {}, stream_mode: ['custom'] });
  await run.frame();
  w.server.send(Kind.CANCEL, run.stream, { action: 'interrupt', reason: 'enough' });
  assert.equal((await run.ended).done.status, 'cancelled');
  await finish({ graph_id: 'counter', input: { x: 1 } });
  assert.deepEqual(w.server.logs.slice(before).map((l) => l.level), ['debug']);
});

test('the store is the server\'s', async () => {
  assert.equal((await finish({ graph_id: 'remembers', input: { x: 'a' } })).snapshot.values.note, 'nothing');
  assert.equal((await finish({ graph_id: 'remembers', input: { x: 'b' } })).snapshot.values.note, 'a');
});

test('the cache is the server\'s', async () => {
  const first = await finish({ graph_id: 'cached', input: { x: 1 } });
  const second = await finish({ graph_id: 'cached', input: { x: 1 } });
  assert.equal(second.snapshot.values.note, first.snapshot.values.note);
  assert.ok(w.server.operations.some((op) => op.op === 'cache.set'));
});

test('factories get config and runtime of each operation', async () => {
  const thread_id = randomUUID();
  const { snapshot } = await finish({ graph_id: 'factory', thread_id, input: { x: 1 }, config: { configurable: { by: 5 } }, context: { c: 1 } });
  assert.deepEqual(snapshot.values, { x: 6, note: 'threads.create_run {"context":{"c":1}}' });
  const { result } = await w.server.call({ verb: 'state.get', graph_id: 'factory', config: { configurable: { thread_id } } });
  assert.equal(result.values.x, 6);
});

test('a functional entrypoint runs', async () => {
  const { snapshot } = await finish({ graph_id: 'doubled', input: { x: 4 } });
  assert.deepEqual(snapshot.values, { twice: 8 });
});

test('values that JSON does not know are still readable', async () => {
  const { frames } = await finish({ graph_id: 'odd', input: { x: 1 } });
  assert.deepEqual(frames.at(-1)?.data, { x: { k: [1] }, note: { err: { name: 'RangeError', message: 'r' }, when: '1970-01-01T00:00:00.000Z', big: '10' } });
});

test('a thread that held what has no JSON can be read', async () => {
  const thread_id = randomUUID();
  assert.equal((await finish({ graph_id: 'wordless', thread_id, input: { x: 1 } })).done.status, 'success');
  const config = { configurable: { thread_id } };
  const { result } = await w.server.call({ verb: 'state.history', graph_id: 'wordless', config });
  assert.deepEqual(result.map((/** @type {any} */ state) => state.values.x), [2, 1, 1, undefined]);
});

test('an exception that cannot be read ends its run and nothing else', async () => {
  const { done } = await finish({ graph_id: 'unreadable', input: { x: 1 } });
  assert.deepEqual([done.status, done.error.message], ['error', 'something was thrown that cannot be read']);
  const { envelope: { ok, error } } = await w.server.call({ verb: 'state.get', graph_id: 'unreadable', config: { configurable: { thread_id: randomUUID() } } });
  assert.deepEqual([ok, error.code], [false, 'internal']);
});

test('a message of a megabyte is cut', async () => {
  const { done } = await finish({ graph_id: 'verbose', input: { x: 1 } });
  assert.ok(done.error.message.length < 70_000 && done.error.message.endsWith('... (1048576 characters)'));
});

test('recursion_limit holds when it is given', async () => {
  const { done } = await finish({ graph_id: 'steps', input: { n: 1 }, config: { recursion_limit: 2 } });
  assert.equal(done.error.error, 'GraphRecursionError');
});

test('state.get shows subgraphs when asked', async () => {
  const thread_id = randomUUID();
  await finish({ graph_id: 'parentAsks', thread_id, input: { x: 1 } });
  const ask = async (/** @type {boolean} */ subgraphs) => (await w.server.call({ verb: 'state.get', graph_id: 'parentAsks', config: { configurable: { thread_id } }, subgraphs })).result.tasks[0];
  const [flat, deep] = [await ask(false), await ask(true)];
  assert.match(flat.checkpoint.checkpoint_ns, /^sub:/);
  assert.equal(flat.state, null);
  assert.deepEqual([deep.state.next, deep.state.values, deep.checkpoint], [['deep'], { x: 1 }, null]);
  const inner = await w.server.call({ verb: 'state.get', graph_id: 'parentAsks', config: { configurable: { thread_id, checkpoint_ns: flat.checkpoint.checkpoint_ns } } });
  assert.deepEqual(inner.result.next, ['deep']);
});

test('state.get of an empty thread', async () => {
  const { result } = await w.server.call({ verb: 'state.get', graph_id: 'counter', config: { configurable: { thread_id: 'none' } } });
  assert.deepEqual(result, { values: {}, next: [], tasks: [], interrupts: [], metadata: {}, created_at: null, checkpoint: { thread_id: 'none', checkpoint_id: null, checkpoint_ns: '', checkpoint_map: null }, parent_checkpoint: null });
});

test('state.get of a checkpoint that is not there', async () => {
  const thread_id = randomUUID();
  await finish({ graph_id: 'counter', thread_id, input: { x: 1 } });
  const { envelope } = await w.server.call({ verb: 'state.get', graph_id: 'counter', config: { configurable: { thread_id, checkpoint_id: '1f1e58fe-6a54-61b1-ffff-db58e073d31f' } } });
  assert.deepEqual([envelope.error.code, envelope.error.message], ['not_found', 'the thread has no checkpoint 1f1e58fe-6a54-61b1-ffff-db58e073d31f']);
});

test('state.history goes back, limited and filtered', async () => {
  const thread_id = randomUUID();
  await finish({ graph_id: 'steps', thread_id, input: { n: 1 } });
  const history = async (/** @type {any} */ more) => (await w.server.call({ verb: 'state.history', graph_id: 'steps', config: { configurable: { thread_id } }, ...more })).result;
  const all = await history({});
  assert.equal(all.length, 7);
  assert.deepEqual(all.map((/** @type {any} */ s) => s.metadata.step), [5, 4, 3, 2, 1, 0, -1]);
  assert.deepEqual(await history({ limit: 2, before: all[1].checkpoint.checkpoint_id }), all.slice(2, 4));
  assert.deepEqual((await history({ filter: { source: 'input' } })).map((/** @type {any} */ s) => s.metadata.step), [-1]);
});

test('state.update writes as a node and answers the new state', async () => {
  const thread_id = randomUUID();
  await finish({ graph_id: 'asks', thread_id, input: {} });
  const { envelope, result } = await w.server.call({ verb: 'state.update', graph_id: 'asks', config: { configurable: { thread_id } }, supersteps: [[{ values: { note: 'by hand' }, as_node: 'ask' }]] });
  assert.equal(envelope.ok, true);
  assert.deepEqual(known(result.snapshot), { values: { x: 1, note: 'by hand' }, next: [], tasks: 0, interrupts: [] });
  assert.equal(result.config.configurable.checkpoint_id, result.snapshot.checkpoint.checkpoint_id);
  const bad = await w.server.call({ verb: 'state.update', graph_id: 'asks', config: { configurable: { thread_id } }, supersteps: [[{ values: {}, as_node: 'nobody' }]] });
  assert.equal(bad.envelope.error.code, 'invalid');
});

test('state.update builds a thread from supersteps', async () => {
  const thread_id = randomUUID();
  const supersteps = [[{ values: { n: 3 }, as_node: '__start__' }], [{ values: { log: ['made'] }, as_node: 'a' }]];
  const { result } = await w.server.call({ verb: 'state.update', graph_id: 'jumps', config: { configurable: { thread_id } }, supersteps });
  assert.deepEqual(result.snapshot.values, { n: 3, log: ['made'] });
});

test('unknown graphs and calls are answered', async () => {
  const { done } = await finish({ graph_id: 'nowhere', input: {} });
  assert.match(done.error.message, /"nowhere" has not been loaded/);
  const { envelope } = await w.server.call({ verb: 'state.sing', graph_id: 'counter' });
  assert.equal(envelope.error.code, 'invalid');
});
