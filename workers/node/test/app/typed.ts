import { BaseMessage } from '@langchain/core/messages';
import { Annotation, MessagesAnnotation, StateGraph } from '@langchain/langgraph';
import type { RunnableConfig } from '@langchain/core/runnables';

import type { Tree } from './typed-tree.js';

const State = Annotation.Root({ x: Annotation<number>() });

async function add(state: typeof State.State, _config: RunnableConfig): Promise<Partial<typeof State.State>> {
  return { x: state.x + 1 };
}

export const graph = new StateGraph(State).addNode('add', add).addEdge('__start__', 'add').compile();

const Rich = Annotation.Root({
  ...MessagesAnnotation.spec,
  /** How it goes. */
  mood: Annotation<'good' | 'bad'>(),
  tree: Annotation<Tree>(),
  maybe: Annotation<{ when: Date; note?: string; tags: string[]; pair: [string, number]; scores: Record<string, number> } | undefined>(),
  last: Annotation<BaseMessage>(),
  on: Annotation<boolean | null>(),
});
const Context = Annotation.Root({ model: Annotation<string>() });

export const rich = new StateGraph(Rich, Context).addNode('same', () => ({})).addEdge('__start__', 'same');

export async function factory(_config: RunnableConfig) {
  return graph;
}
