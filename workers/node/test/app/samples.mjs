import { AIMessageChunk } from '@langchain/core/messages';
import { FakeStreamingChatModel } from '@langchain/core/utils/testing';
import { Annotation, MessagesAnnotation, StateGraph, interrupt } from '@langchain/langgraph';

// The graphs that the samples in ../samples were captured from.

const X = Annotation.Root({ x: Annotation({ reducer: (_, b) => b, default: () => 0 }) });
export const trivial = new StateGraph(X).addNode('n', ({ x }) => ({ x: x + 1 })).addEdge('__start__', 'n').addEdge('n', '__end__').compile();

const Noted = Annotation.Root({ x: Annotation({ reducer: (_, b) => b, default: () => 0 }), note: Annotation({ reducer: (_, b) => b, default: () => '' }) });
const inner = new StateGraph(Noted).addNode('inner', ({ x }, config) => { config.writer?.({ from: 'inner' }); return { x: x + 10 }; }).addEdge('__start__', 'inner').compile();
export const parent = new StateGraph(Noted).addNode('first', ({ x }) => ({ x: x + 1 })).addNode('sub', inner).addEdge('__start__', 'first').addEdge('first', 'sub').compile();

export const asks = new StateGraph(Annotation.Root({ x: Annotation(), note: Annotation() }))
  .addNode('a', () => ({ x: 1 })).addNode('ask', () => ({ note: interrupt({ q: 'ok?' }) }))
  .addEdge('__start__', 'a').addEdge('a', 'ask').addEdge('ask', '__end__').compile();

const model = new FakeStreamingChatModel({ chunks: ['tok0 ', 'tok1 ', 'tok2 '].map((content) => new AIMessageChunk(content)) });
export const tokens = new StateGraph(MessagesAnnotation)
  .addNode('llm', async ({ messages }, config) => ({ messages: [await model.invoke(messages, config)] }))
  .addEdge('__start__', 'llm').addEdge('llm', '__end__').compile();
