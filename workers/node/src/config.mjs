/**
 * Configurations between the wire (snake case, reference 4.1) and the library (camel case).
 */

/** The names that differ. @type {Record<string, string>} */
const RENAMED = { recursion_limit: 'recursionLimit', max_concurrency: 'maxConcurrency', run_name: 'runName', run_id: 'runId' };

/** Metadata of a config that checkpoints do not repeat (reference 14.1). */
const NOT_STORED = /^(?:__|langgraph_auth_|langgraph_request_id$|(?:thread_id|checkpoint_id|checkpoint_ns|checkpoint_map|langgraph_step|langgraph_node|langgraph_triggers|langgraph_path|langgraph_checkpoint_ns)$)/;

/** Keys of `configurable` that clients do not get back: the library's own and those of authentication. */
const NOT_SHOWN = /^(?:__|langgraph_auth_)/;

/**
 * The library's config for a config of the wire. A member that is absent stays absent, so that the graph's own setting
 * holds.
 *
 * @param {any} wire
 * @returns {any}
 */
export function libraryConfig(wire) {
  /** @type {any} */
  const config = {};
  for (const [key, value] of Object.entries(wire ?? {})) {
    if (value !== null && value !== undefined) config[RENAMED[key] ?? key] = value;
  }
  config.configurable = { ...config.configurable };
  return config;
}

/**
 * What a run's config says about the run (reference 4.2).
 *
 * @param {any} run the RUN envelope
 * @param {string | null} version of langgraph
 */
export function runMetadata(run, version) {
  const url = process.env.LANGGRAPH_API_URL;
  return {
    created_by: 'system',
    ...run.config?.metadata,
    graph_id: run.graph_id,
    assistant_id: run.assistant_id,
    run_attempt: run.attempt,
    langgraph_version: version,
    langgraph_plan: 'self-hosted',
    langgraph_host: 'self-hosted',
    ...(url ? { langgraph_api_url: url } : {}),
    thread_id: run.thread_id,
    run_id: run.run_id,
  };
}

/** The scalar metadata of a config that each of its checkpoints carries (reference 14.1). @param {any} metadata */
export function storedMetadata(metadata) {
  const scalars = Object.entries(metadata ?? {}).filter(([key, value]) => !NOT_STORED.test(key) && isScalar(value));
  return Object.fromEntries(scalars);
}

/** @param {unknown} value */
function isScalar(value) {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

/** A config of the library as clients may see it. @param {any} config */
export function shownConfig(config) {
  if (!config) return config;
  const { callbacks: _, ...rest } = config;
  const configurable = Object.entries(rest.configurable ?? {}).filter(([key, value]) => !NOT_SHOWN.test(key) && value !== undefined);
  return { ...rest, configurable: Object.fromEntries(configurable) };
}

/**
 * The address of a checkpoint (reference 3, CheckpointConfig).
 *
 * @param {any} config
 * @returns {{thread_id: string | null, checkpoint_id: string | null, checkpoint_ns: string, checkpoint_map: any} | null}
 */
export function checkpointOf(config) {
  const c = config?.configurable;
  if (!c) return null;
  return {
    thread_id: c.thread_id ?? null,
    checkpoint_id: c.checkpoint_id ?? null,
    checkpoint_ns: c.checkpoint_ns ?? '',
    checkpoint_map: c.checkpoint_map ?? null,
  };
}
