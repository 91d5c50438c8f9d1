const { Annotation, StateGraph } = require('@langchain/langgraph');

const State = Annotation.Root({ x: Annotation() });

exports.graph = new StateGraph(State).addNode('add', ({ x }) => ({ x: x + 1 })).addEdge('__start__', 'add').compile();
