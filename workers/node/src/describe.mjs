/**
 * Schemas and drawings of graphs (reference 16): each part as far as it can be derived.
 *
 * @typedef {import('./loader.mjs').Loaded} Loaded
 * @typedef {Record<string, any>} Schema
 * @typedef {{state_schema: Schema, input_schema?: Schema, output_schema?: Schema, config_schema?: Schema, context_schema?: Schema}} Schemas
 *
 * What is known of the types in the source of a graph.
 *
 * @typedef {{state?: Schema, input?: Schema, output?: Schema, config?: Schema}} Types
 */

/** How many answers are kept for one graph: namespaces and depths are the caller's choice. */
const KEPT = 256;

/** Answers about graphs; for a compiled graph each is made once in the life of the process. */
export class Describer {
  /** @type {WeakMap<Loaded, Map<string, Promise<any>>>} */
  #answers = new WeakMap();
  #types;
  #library;

  /**
   * @param {import('./library.mjs').Library} library
   * @param {(graphId: string) => Promise<Types>} types what static analysis knows of a graph
   */
  constructor(library, types) {
    this.#library = library;
    this.#types = types;
  }

  /**
   * Answers one graph.* call.
   *
   * @param {Loaded} loaded
   * @param {any} graph
   * @param {any} config
   * @param {any} call
   */
  answer(loaded, graph, config, call) {
    if (!('compiled' in loaded)) return this.#make(graph, config, call);
    const known = this.#answers.get(loaded) ?? new Map();
    this.#answers.set(loaded, known);
    const key = JSON.stringify([call.verb, call.xray, call.namespace, call.recurse]);
    if (!known.has(key)) {
      if (known.size >= KEPT) known.clear();
      known.set(key, this.#make(graph, config, call));
    }
    return known.get(key);
  }

  /** @param {any} graph @param {any} config @param {any} call */
  async #make(graph, config, call) {
    if (call.verb === 'graph.draw') return drawing(graph, config, call.xray ?? false);
    if (call.verb === 'graph.subgraphs') return this.#subgraphs(graph, call);
    return schemasOf(graph, this.#library, await this.#types(call.graph_id));
  }

  /** The schemas of subgraphs by namespace; an unknown namespace is empty. @param {any} graph @param {any} call */
  async #subgraphs(graph, { namespace, recurse }) {
    const wanted = namespace || undefined;
    /** @type {Record<string, Schemas>} */
    const found = {};
    for await (const [name, subgraph] of graph.getSubgraphsAsync(wanted, recurse === true || wanted?.includes('|') === true)) {
      found[name] = await schemasOf(subgraph, this.#library, {});
    }
    return found;
  }
}

/** Nodes and edges; xray opens subgraphs, to a depth if it is a number. @param {any} graph @param {any} config @param {boolean | number} xray */
async function drawing(graph, config, xray) {
  const drawn = (await graph.getGraphAsync({ ...config, xray })).toJSON();
  return { ...drawn, edges: drawn.edges.map((/** @type {any} */ edge) => ({ conditional: false, ...edge })) };
}

/** @param {any} graph @param {import('./library.mjs').Library} library @param {Types} types @returns {Promise<Schemas>} */
async function schemasOf(graph, library, types) {
  const { builder = {} } = graph;
  const derive = (/** @type {any} */ definition, /** @type {'state' | 'input'} */ form) => schemaOf(definition, form, library, graph._metaRegistry);
  const given = typeof builder._inputRuntimeDefinition === 'object' ? builder._inputRuntimeDefinition : builder._schemaRuntimeDefinition;
  const config = derive(builder._configRuntimeSchema, 'state') ?? types.config;
  return /** @type {Schemas} */ (present({
    state_schema: derive(builder._schemaRuntimeDefinition, 'state') ?? types.state ?? {},
    input_schema: derive(given, 'input') ?? types.input,
    output_schema: derive(builder._outputRuntimeDefinition, 'state') ?? types.output,
    config_schema: config,
    context_schema: config,
  }));
}

/** @param {Record<string, any>} members */
function present(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/**
 * What a definition says of itself: a schema object by its own method, a zod schema through the library's registry, which
 * knows reducers, or else converted as it is.
 *
 * @param {any} definition
 * @param {'state' | 'input'} form
 * @param {import('./library.mjs').Library} library
 * @param {any} registry of the graph
 * @returns {Schema | undefined}
 */
function schemaOf(definition, form, library, registry) {
  if (typeof definition !== 'object' || definition === null) return undefined;
  const own = form === 'input' ? 'getInputJsonSchema' : 'getJsonSchema';
  const ways = [
    () => definition[own]?.(),
    () => registered(definition, form, library, registry),
    () => library.toJsonSchema?.(definition),
    () => definition.toJSONSchema?.(),
  ];
  for (const way of ways) {
    const schema = attempt(way);
    if (schema !== definition && says(schema)) return schema;
  }
  return undefined;
}

/** @param {any} definition @param {'state' | 'input'} form @param {import('./library.mjs').Library} library @param {any} registry */
function registered(definition, form, { zodSchemas }, registry) {
  const builder = { _schemaRuntimeDefinition: definition, _inputRuntimeDefinition: definition };
  const derive = form === 'input' ? zodSchemas?.getInputTypeSchema : zodSchemas?.getStateTypeSchema;
  return derive?.({ builder }, ...(registry ? [registry] : []));
}

/** Whether a schema says anything: some converters answer an empty one for what they do not know. @param {any} schema */
function says(schema) {
  return typeof schema === 'object' && schema !== null && Object.keys(schema).some((key) => key !== '$schema');
}

/** Types that have no JSON schema make a converter throw. @template T @param {() => T} way @returns {T | undefined} */
function attempt(way) {
  try {
    return way();
  } catch {
    return undefined;
  }
}
