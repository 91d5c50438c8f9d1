import { MessagesZodMeta, ReducedValue, StateGraph, StateSchema, MessagesValue } from '@langchain/langgraph';
import { registry } from '@langchain/langgraph/zod';
import * as z4 from 'zod';
import * as z3 from 'zod/v3';

const chain = (builder) => builder.addNode('same', () => ({})).addEdge('__start__', 'same');

export const ofStateSchema = chain(new StateGraph(new StateSchema({ messages: MessagesValue, count: new ReducedValue(z4.number().default(0), { inputSchema: z4.string(), reducer: (a, b) => a + Number(b) }) }))).compile();

export const ofZod4 = chain(new StateGraph({
  state: z4.object({ topic: z4.string().describe('about what'), log: z4.array(z4.string()).register(registry, { reducer: { schema: z4.string(), fn: (a, b) => [...a, b] }, default: () => [] }), messages: z4.array(z4.any()).register(registry, MessagesZodMeta) }),
  input: z4.object({ topic: z4.string() }),
  output: z4.object({ log: z4.array(z4.string()) }),
  context: z4.object({ model: z4.enum(['a', 'b']) }),
})).compile();

export const ofZod3 = chain(new StateGraph(z3.object({ topic: z3.string(), n: z3.number().optional() }))).compile();

/** What a library would make whose schemas only know how to convert themselves. */
export const ofOther = Object.assign(Object.create(Object.getPrototypeOf(ofZod4)), ofZod4, {
  builder: { _schemaRuntimeDefinition: { toJSONSchema: () => ({ type: 'object', title: 'own' }) } },
});

export const bad = Object.assign(Object.create(Object.getPrototypeOf(ofZod4)), ofZod4, {
  builder: { _schemaRuntimeDefinition: { getJsonSchema: () => { throw new Error('no'); } } },
});
