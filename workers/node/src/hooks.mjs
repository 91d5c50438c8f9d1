/**
 * Module resolution of a worker. The worker has no dependencies: it imports the user's LangGraph as `slipway-app:<package>`.
 * Imports of these packages from anywhere lead to the same copy, so that there is one of each per process.
 */

const APP = 'slipway-app:';
const SHARED = /^@langchain\/(?:core|langgraph|langgraph-checkpoint)(?:\/|$)/;

let base = '';

/** @param {{base: string}} data the URL of a file in the user's application, existing or not */
export function initialize(data) {
  base = data.base;
}

/**
 * @param {string} specifier
 * @param {any} context
 * @param {(specifier: string, context: any) => Promise<any>} next
 */
export async function resolve(specifier, context, next) {
  if (specifier.startsWith(APP)) return shared(specifier.slice(APP.length), context, next);
  if (!SHARED.test(specifier)) return next(specifier, context);
  try {
    return await shared(specifier, context, next);
  } catch {
    return next(specifier, context);
  }
}

/**
 * Checkpoint is a dependency of langgraph, not always of the application: it is found where langgraph finds it.
 *
 * @param {string} specifier
 * @param {any} context
 * @param {(specifier: string, context: any) => Promise<any>} next
 */
async function shared(specifier, context, next) {
  if (!specifier.startsWith('@langchain/langgraph-checkpoint')) return next(specifier, { ...context, parentURL: base });
  const langgraph = await next('@langchain/langgraph', { ...context, parentURL: base });
  return next(specifier, { ...context, parentURL: langgraph.url });
}
