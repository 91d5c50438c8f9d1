import { setTimeout as sleep } from 'node:timers/promises';

import { FakeListChatModel } from '@langchain/core/utils/testing';
import { tool } from '@langchain/core/tools';
import { AIMessage } from '@langchain/core/messages';
import { Annotation, Command, MemorySaver, MessagesAnnotation, Send, StateGraph, entrypoint, getStore, interrupt } from '@langchain/langgraph';
import { Client } from '@langchain/langgraph-sdk';
import { z } from 'zod';

const State = Annotation.Root({ x: Annotation(), note: Annotation() });
const Log = Annotation.Root({ log: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }), n: Annotation() });

/** One node that adds one. */
export const builder = new StateGraph(State).addNode('add', ({ x }) => ({ x: x + 1 })).addEdge('__start__', 'add').addEdge('add', '__end__');
export const counter = builder.compile();
export const owned = builder.compile({ checkpointer: new MemorySaver() });
export const promised = Promise.resolve(builder.compile());
export const agentLike = { graph: builder.compile(), invoke() {} };
export const notAGraph = { hello: 'world' };
export default counter;

/** A factory that reads the config. */
export async function factory(config, runtime) {
  const by = config.configurable.by ?? 10;
  return new StateGraph(State).addNode('add', ({ x }) => ({ x: x + by, note: `${runtime.accessContext} ${JSON.stringify(runtime.executionRuntime)}` })).addEdge('__start__', 'add').addEdge('add', '__end__');
}

export const doubled = entrypoint('doubled', async (input) => ({ twice: input.x * 2 }));

const model = new FakeListChatModel({ responses: ['abc'] });
export const chat = new StateGraph(MessagesAnnotation)
  .addNode('llm', async ({ messages }, config) => {
    config.writer?.({ progress: 100 });
    return { messages: [await model.invoke(messages, config)] };
  })
  .addEdge('__start__', 'llm').addEdge('llm', '__end__').compile();

const quiet = model.withConfig({ tags: ['nostream'] });
export const hushed = new StateGraph(MessagesAnnotation)
  .addNode('llm', async ({ messages }, config) => { await quiet.invoke(messages, config); return { messages: [new AIMessage({ id: 'said', content: 'aloud' })] }; })
  .addEdge('__start__', 'llm').addEdge('llm', '__end__').compile();

/** Waits for an answer after one step. */
export const asks = new StateGraph(State)
  .addNode('a', () => ({ x: 1 }))
  .addNode('ask', () => ({ note: interrupt({ q: 'ok?' }) }))
  .addEdge('__start__', 'a').addEdge('a', 'ask').addEdge('ask', '__end__').compile();

/** Waits for two answers at once. */
export const asksTwice = new StateGraph(Log)
  .addNode('one', () => ({ log: [`one:${interrupt('first?')}`] }))
  .addNode('two', () => ({ log: [`two:${interrupt('second?')}`] }))
  .addEdge('__start__', 'one').addEdge('__start__', 'two').compile();

const inner = new StateGraph(State)
  .addNode('inner', ({ x }, config) => { config.writer?.({ from: 'inner' }); return { x: x + 10 }; })
  .addEdge('__start__', 'inner').compile();
export const parent = new StateGraph(State)
  .addNode('first', ({ x }) => ({ x: x + 1 })).addNode('sub', inner)
  .addEdge('__start__', 'first').addEdge('first', 'sub').compile();

const innerAsk = new StateGraph(State).addNode('deep', () => ({ note: interrupt('deep?') })).addEdge('__start__', 'deep').compile();
export const parentAsks = new StateGraph(State).addNode('sub', innerAsk).addEdge('__start__', 'sub').compile();

const innerFails = new StateGraph(State).addNode('deep', () => { throw new Error('deep boom'); }).addEdge('__start__', 'deep').compile();
export const parentFails = new StateGraph(State).addNode('sub', innerFails).addEdge('__start__', 'sub').compile();

export const fails = new StateGraph(State)
  .addNode('a', () => ({ x: 1 })).addNode('b', () => { throw new TypeError('boom'); })
  .addEdge('__start__', 'a').addEdge('a', 'b').compile();

/** Sleeps until the signal of the run, or, deaf, does not look at it. */
export const slow = new StateGraph(State)
  .addNode('a', () => ({ x: 1 }))
  .addNode('sleep', async ({ note }, config) => {
    config.writer?.('sleeping');
    await (note === 'deaf' ? sleep(3000) : sleep(60_000, undefined, { signal: config.signal }));
    return { x: 2 };
  })
  .addEdge('__start__', 'a').addEdge('a', 'sleep').compile();

/** Blocks the whole process for a while. */
export const blocks = new StateGraph(State)
  .addNode('block', ({ x }) => { for (const end = Date.now() + 300; Date.now() < end;); return { x: x + 1 }; })
  .addEdge('__start__', 'block').compile();

/** Many steps, one after another, each writing who it is. */
export const steps = new StateGraph(Log)
  .addNode('step', async ({ n }, config) => { await sleep(1); config.writer?.(n); return { log: [`${n}:${config.configurable.thread_id}:${config.context?.who ?? ''}`] }; })
  .addConditionalEdges('step', ({ log }) => (log.length < 5 ? 'step' : '__end__'))
  .addEdge('__start__', 'step').compile();

/** Reads and writes the store. */
export const remembers = new StateGraph(State)
  .addNode('put', async ({ x }, config) => {
    const store = config.store ?? getStore();
    const before = await store.get(['seen'], 'x');
    await store.put(['seen'], 'x', { x });
    return { note: before?.value.x ?? 'nothing' };
  })
  .addEdge('__start__', 'put').compile();

/** Sends and goes where it is told. */
export const fan = new StateGraph(Log)
  .addNode('work', ({ n }) => ({ log: [`work ${n}`] }))
  .addNode('other', () => ({ log: ['other'] }))
  .addConditionalEdges('__start__', () => [new Send('work', { n: 1 }), new Send('work', { n: 2 })])
  .compile();

const adder = tool(({ a, b }) => String(a + b), { name: 'adder', description: 'adds', schema: z.object({ a: z.number(), b: z.number() }) });
export const tools = new StateGraph(State)
  .addNode('use', async (_, config) => ({ note: await adder.invoke({ a: 1, b: 2 }, config) }))
  .addEdge('__start__', 'use').compile();

let computed = 0;
export const cached = new StateGraph(State)
  .addNode('once', ({ x }) => ({ note: `computed ${++computed} for ${x}` }), { cachePolicy: true })
  .addEdge('__start__', 'once').compile();

export const odd = new StateGraph(State)
  .addNode('a', () => ({ x: new Map([['k', new Set([1])]]), note: { err: new RangeError('r'), when: new Date(0), big: 10n, none: undefined } }))
  .addEdge('__start__', 'a').compile();

// What has no JSON at all.
export const wordless = new StateGraph(State).addNode('a', () => ({ note: () => 1 })).addNode('b', () => ({ x: 2 }))
  .addEdge('__start__', 'a').addEdge('a', 'b').compile();

// An exception that cannot even be asked what it is, thrown where the library does not see it first.
export const unreadable = () => { throw new Proxy({}, { get() { throw new Error('get'); }, has() { throw new Error('has'); }, getPrototypeOf() { throw new Error('proto'); } }); };

export const verbose = new StateGraph(State).addNode('a', () => { throw new Error('z'.repeat(1 << 20)); }).addEdge('__start__', 'a').compile();

export const jumps = new StateGraph(Log)
  .addNode('a', () => new Command({ goto: 'b', update: { log: ['a'] } }), { ends: ['b'] })
  .addNode('b', () => ({ log: ['b'] })).addEdge('__start__', 'a').compile();

export const crashing = new StateGraph(State)
  .addNode('a', () => { globalThis.setTimeout(() => { throw new Error('stray'); }, 0); Promise.reject(new Error('lost')); return { x: 1 }; })
  .addNode('b', async () => { await sleep(20); return { x: 2 }; }).addEdge('__start__', 'a').addEdge('a', 'b').compile();

// Starts work that nobody waits for and that the signal ends.
export const leaves = new StateGraph(State)
  .addNode('a', async (_state, config) => {
    void sleep(60_000, undefined, { signal: config.signal });
    config.writer?.('on');
    await sleep(60_000, undefined, { signal: config.signal });
    return {};
  }).addEdge('__start__', 'a').compile();

/** Goes one way or the other. */
export const chooses = new StateGraph(State)
  .addNode('left', () => ({})).addNode('right', () => ({}))
  .addConditionalEdges('__start__', ({ x }) => (x ? 'left' : 'right'), ['left', 'right']).compile();

/** Two steps of a graph within another. */
export const nests = new StateGraph(State)
  .addNode('sub', new StateGraph(State).addNode('one', () => ({})).addNode('two', () => ({})).addEdge('__start__', 'one').addEdge('one', 'two').compile())
  .addEdge('__start__', 'sub').compile();

/** Forty steps that write and wait for nothing. */
export const rushes = new StateGraph(Log)
  .addNode('step', ({ n }, config) => { config.writer?.(n); return { log: [n] }; })
  .addConditionalEdges('step', ({ log }) => (log.length < 40 ? 'step' : '__end__'))
  .addEdge('__start__', 'step').compile();

/** Like the models of providers, it waits for those who take its tokens. */
class WordyModel extends FakeListChatModel {
  async *_streamResponseChunks(messages, options, runManager) {
    for (const letter of 'x'.repeat(400)) {
      const chunk = this._createResponseChunk(letter);
      yield chunk;
      await runManager?.handleLLMNewToken(letter, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

const wordy = new WordyModel({ responses: [''] });
export const talks = new StateGraph(MessagesAnnotation)
  .addNode('llm', async ({ messages }, config) => ({ messages: [await wordy.invoke(messages, config)] }))
  .addEdge('__start__', 'llm').compile();

const fetcher = tool(async ({ url }, config) => (await fetch(url, { signal: config.signal })).text(), { name: 'fetcher', description: 'fetches', schema: z.object({ url: z.string() }) });
export const fetches = new StateGraph(State)
  .addNode('use', async ({ note }, config) => ({ note: await fetcher.invoke({ url: note }, config) }))
  .addEdge('__start__', 'use').compile();

const patient = new FakeListChatModel({ responses: ['slowly said'], sleep: 60_000 });
export const waits = new StateGraph(MessagesAnnotation)
  .addNode('llm', async ({ messages }, config) => {
    config.writer?.('asking');
    return { messages: [await patient.invoke(messages, config)] };
  })
  .addEdge('__start__', 'llm').compile();

/** Talks to its own server. */
export const calls = new StateGraph(State)
  .addNode('create', async () => ({ note: (await new Client().threads.create({ metadata: { from: 'graph' } })).thread_id }))
  .addEdge('__start__', 'create').compile();

/** Waits for an answer of its own server that does not come, or not for long. */
export const hangs = new StateGraph(State)
  .addNode('ask', async ({ x }) => {
    const loopback = globalThis[Symbol.for('langgraph_api:fetch')];
    const wait = new AbortController();
    if (x) sleep(20).then(() => wait.abort());
    try {
      await loopback('http://self/ok', { signal: wait.signal });
      return {};
    } catch (error) {
      return { note: error.name };
    }
  })
  .addEdge('__start__', 'ask').compile();

/** A factory that asks who is there, and a node that asks again. */
export const whose = (config) => new StateGraph(State)
  .addNode('a', (_, inner) => ({ note: [config, inner].map(({ configurable }) => configurable.langgraph_auth_user?.identity).join() }))
  .addEdge('__start__', 'a');
