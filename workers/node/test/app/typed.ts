import { Annotation, StateGraph } from '@langchain/langgraph';
import type { RunnableConfig } from '@langchain/core/runnables';

const State = Annotation.Root({ x: Annotation<number>() });

async function add(state: typeof State.State, _config: RunnableConfig): Promise<Partial<typeof State.State>> {
  return { x: state.x + 1 };
}

export const graph = new StateGraph(State).addNode('add', add).addEdge('__start__', 'add').compile();
