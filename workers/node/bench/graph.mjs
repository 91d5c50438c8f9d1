import { MessagesAnnotation, StateGraph } from '@langchain/langgraph';

/** One node that answers one message. */
export const trivial = new StateGraph(MessagesAnnotation)
  .addNode('reply', () => ({ messages: [{ role: 'assistant', content: 'hello' }] }))
  .addEdge('__start__', 'reply')
  .addEdge('reply', '__end__')
  .compile();
