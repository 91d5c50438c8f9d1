import { Cutter } from './link.mjs';

/**
 * Makes the store class over the user's own base class (reference 15). All operations of one batch travel in one ask.
 *
 * @param {any} checkpoint the module `@langchain/langgraph-checkpoint`
 */
export function storeClass(checkpoint) {
  return class SlipwayStore extends checkpoint.BaseStore {
    /** @param {import('./link.mjs').Link} link @param {number} [run] the stream number of the run, 0 for none */
    constructor(link, run = 0) {
      super();
      this.link = link;
      this.run = run;
    }

    /** @param {any[]} operations @returns {Promise<any[]>} */
    async batch(operations) {
      if (operations.length === 0) return [];
      const answer = await this.link.ask({ op: 'store.batch', run: this.run, ops: operations.map(wireOf) });
      return answer.envelope.results.map(resultOf);
    }
  };
}

/** @param {any} operation @returns {Record<string, any>} */
function wireOf(operation) {
  if ('namespacePrefix' in operation) return { search: searchOf(operation) };
  if ('value' in operation) return { put: putOf(operation) };
  if ('key' in operation) return { get: { namespace: operation.namespace, key: operation.key } };
  return { namespaces: namespacesOf(operation) };
}

/** @param {any} op */
function searchOf({ namespacePrefix, filter, query, limit = 10, offset = 0 }) {
  return { namespace_prefix: namespacePrefix, filter, query, limit, offset };
}

/** @param {any} op */
function putOf({ namespace, key, value, index }) {
  return { namespace, key, value: value ?? null, index };
}

/** @param {any} op */
function namespacesOf({ matchConditions = [], maxDepth, limit = 100, offset = 0 }) {
  const path = (/** @type {string} */ type) => matchConditions?.find((/** @type {any} */ c) => c.matchType === type)?.path;
  return { prefix: path('prefix'), suffix: path('suffix'), max_depth: maxDepth, limit, offset };
}

/** @param {any} result */
function resultOf(result) {
  if ('item' in result) return result.item === null ? null : itemOf(result.item);
  if ('items' in result) return result.items.map(itemOf);
  if ('namespaces' in result) return result.namespaces;
  return undefined;
}

/** @param {any} item */
function itemOf({ namespace, key, value, created_at, updated_at, score }) {
  const item = { namespace, key, value, createdAt: new Date(created_at), updatedAt: new Date(updated_at) };
  return score === undefined || score === null ? item : { ...item, score };
}

/**
 * Makes the cache class over the user's own base class: results of nodes with a cache policy, shared by all workers
 * of this language (reference 15). Each graph has entries of its own: the library names them by node, and a deployment may
 * have two nodes of one name.
 *
 * @param {any} checkpoint the module `@langchain/langgraph-checkpoint`
 */
export function cacheClass(checkpoint) {
  return class SlipwayCache extends checkpoint.BaseCache {
    /** @param {import('./link.mjs').Link} link @param {any} serde @param {string} graphId */
    constructor(link, serde, graphId) {
      super(serde);
      this.link = link;
      this.graphId = graphId;
    }

    /** @param {string[]} namespace */
    place(namespace) {
      return [this.graphId, ...namespace];
    }

    /** @param {[string[], string][]} keys */
    async get(keys) {
      if (keys.length === 0) return [];
      const answer = await this.link.ask({ op: 'cache.get', run: 0, language: 'node', keys: keys.map(([namespace, key]) => [this.place(namespace), key]) });
      const cutter = new Cutter(answer.payload);
      return Promise.all(answer.envelope.hits.map(async (/** @type {any} */ hit) => {
        return { key: keys[hit.index], value: await this.serde.loadsTyped(hit.type, cutter.take(hit.size)) };
      }));
    }

    /** @param {{key: [string[], string], value: any, ttl?: number}[]} pairs */
    async set(pairs) {
      const dumped = await Promise.all(pairs.map(({ value }) => this.serde.dumpsTyped(value)));
      const entries = pairs.map(({ key: [namespace, key], ttl }, i) => {
        return { namespace: this.place(namespace), key, ttl: ttl ?? null, type: dumped[i][0], size: dumped[i][1].byteLength };
      });
      this.link.tell({ op: 'cache.set', run: 0, language: 'node', entries }, dumped.map(([, bytes]) => bytes));
    }

    /** @param {string[][]} namespaces none means all */
    async clear(namespaces) {
      await this.link.ask({ op: 'cache.clear', run: 0, language: 'node', namespaces: namespaces.length > 0 ? namespaces.map((namespace) => this.place(namespace)) : null });
    }
  };
}
