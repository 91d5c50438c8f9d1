import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { register } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * The user's own LangGraph packages.
 *
 * @typedef {object} Library
 * @property {any} langgraph
 * @property {any} checkpoint
 * @property {any} [zodSchemas] the module `@langchain/langgraph/zod/schema`, where there is one
 * @property {((schema: any) => any)} [toJsonSchema] core's converter of zod schemas
 * @property {string | null} version
 */

const LANGGRAPH = '@langchain/langgraph';

/**
 * The versions of the packages an application brings; null where one cannot be found.
 *
 * @param {string} root
 * @returns {{langgraph: string | null, checkpoint: string | null, core: string | null}}
 */
export function versions(root) {
  const langgraph = find(root, LANGGRAPH);
  const checkpoint = langgraph && find(langgraph, `${LANGGRAPH}-checkpoint`);
  return { langgraph: versionOf(langgraph), checkpoint: versionOf(checkpoint), core: versionOf(find(root, '@langchain/core')) };
}

/**
 * Imports the packages, seen from the first of the directories that has them.
 * It may be called once per process, because it installs the resolve hook.
 *
 * @param {string[]} roots
 * @returns {Promise<Library>}
 */
export async function importLibrary(roots) {
  const root = roots.find((dir) => find(dir, LANGGRAPH) !== null);
  if (root === undefined) throw new Error(missing(roots[0]));
  register('./hooks.mjs', import.meta.url, { data: { base: pathToFileURL(path.join(root, 'slipway.mjs')).href } });
  const [langgraph, checkpoint] = await Promise.all([load(LANGGRAPH), load(`${LANGGRAPH}-checkpoint`)]);
  const [zodSchemas, converters] = await Promise.all([optional(`${LANGGRAPH}/zod/schema`), optional('@langchain/core/utils/json_schema')]);
  return { langgraph, checkpoint, zodSchemas, toJsonSchema: converters?.toJsonSchema, version: versions(root).langgraph };
}

/** @param {string} name @returns {Promise<any>} */
async function load(name) {
  return import(`slipway-app:${name}`);
}

/** What older versions of a package do not have. @param {string} name @returns {Promise<any>} */
async function optional(name) {
  return load(name).catch(() => undefined);
}

/** @param {string} root */
function missing(root) {
  return `the package ${LANGGRAPH} is not installed in ${root}; add it to the dependencies of package.json`;
}

/** The directory of a package as seen from another directory. @param {string} from @param {string} name @returns {string | null} */
function find(from, name) {
  for (let dir = path.resolve(from); ; dir = path.dirname(dir)) {
    const candidate = path.join(dir, 'node_modules', name);
    if (existsSync(path.join(candidate, 'package.json'))) return realpathSync(candidate);
    if (dir === path.dirname(dir)) return null;
  }
}

/** @param {string | null} directory @returns {string | null} */
function versionOf(directory) {
  if (directory === null) return null;
  return JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8')).version ?? null;
}
