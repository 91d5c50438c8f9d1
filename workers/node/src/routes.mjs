/**
 * The routes of a Hono app as LOADED tells them (protocol, "Starting").
 *
 * @typedef {{path: string, methods: string[] | null, kind: 'http' | 'websocket'}} Route
 * @typedef {{path: string, method: string, handler: Function}} HonoRoute
 */

/** The key under which Hono keeps the handler that it wrapped for a mounted app. */
const COMPOSED = '__COMPOSED_HANDLER';

/**
 * @param {HonoRoute[]} entries in the app's order
 * @param {boolean} sockets whether what answers a GET may also take a WebSocket
 * @returns {{routes: Route[] | null, middleware: boolean}} no routes when a path cannot be told
 */
export function routesOf(entries, sockets = false) {
  const middleware = entries.some((entry) => isMiddleware(entry) && entry.path.endsWith('*'));
  const paths = entries.filter((entry) => !isMiddleware(entry)).map((entry) => routesAt(entry, sockets));
  return { routes: paths.includes(null) ? null : distinct(/** @type {Route[]} */ (paths.flat())), middleware };
}

/** A route of several handlers is one. @param {Route[]} routes */
function distinct(routes) {
  return [...new Map(routes.map((route) => [JSON.stringify(route), route])).values()];
}

/** Middleware takes `next`; Hono keeps no other sign of it. @param {HonoRoute} entry */
function isMiddleware({ method, handler }) {
  const own = /** @type {any} */ (handler)[COMPOSED] ?? handler;
  return method === 'ALL' && own.length > 1;
}

/** @param {HonoRoute} entry @param {boolean} sockets @returns {Route[] | null} */
function routesAt({ path, method }, sockets) {
  const methods = method === 'ALL' ? null : method === 'GET' ? ['GET', 'HEAD'] : [method];
  const kinds = /** @type {('http' | 'websocket')[]} */ (sockets && (methods ?? ['GET']).includes('GET') ? ['http', 'websocket'] : ['http']);
  const plain = pathsOf(path);
  return plain && plain.flatMap((at) => kinds.map((kind) => ({ path: at, methods: kind === 'http' ? methods : null, kind })));
}

/** Hono's `/a/:name{regex}/:last?` and `/b/*` as paths with `{name}` and `{name:path}`. @param {string} path @returns {string[] | null} */
function pathsOf(path) {
  const optional = path.match(/^(.*)\/:([^/{}?]+)\?$/);
  if (optional) return both(pathsOf(optional[1] || '/'), pathsOf(`${optional[1]}/:${optional[2]}`));
  const named = path.replace(/:([^/{}?]+)(?:\{([^/]*)\})?/g, (_, name, regex) => (mayCross(regex) ? `{${name}:path}` : `{${name}}`));
  const plain = named.replace(/\/\*$/, '/{rest:path}');
  if (/[*?]/.test(plain)) return null;
  return path.endsWith('/*') ? [plain, plain.slice(0, -'/{rest:path}'.length) || '/'] : [plain];
}

/** Whether a parameter's pattern may match a slash. @param {string | undefined} regex */
function mayCross(regex) {
  return regex !== undefined && /[./\\^]/.test(regex);
}

/** @param {string[] | null} a @param {string[] | null} b */
function both(a, b) {
  return a && b && [...a, ...b];
}
