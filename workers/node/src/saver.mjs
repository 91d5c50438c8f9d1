import { Cutter } from './link.mjs';

/**
 * Where a saver's operations belong.
 *
 * @typedef {object} Scope
 * @property {number} run the stream number of the run, 0 for none
 * @property {string | null} runId
 * @property {boolean} wait whether writes wait until they are durable: durability `sync`, or no run
 * @property {Record<string, any>} extra what is added to the metadata of every checkpoint
 * @property {(put: Put) => void} [onPut] told of every checkpoint written
 * @property {(taskId: string, writes: [string, any][]) => void} [onWrites] told of every write of a task
 * @property {(error: Error) => void} [onStale] told when the server says that the run is no longer ours
 * @property {string} [freshThread] the run's thread while it has no checkpoint: reads of it find nothing
 * @property {boolean} [ended] the run is over: what still writes is too late
 *
 * @typedef {{config: any, checkpoint: any, metadata: any, parentId: string | null, ns: string}} Put
 */

/** Positions of the writes that have none of their own (reference 14.4). @type {Record<string, number>} */
const SPECIAL = { __error__: -1, __scheduled__: -2, __interrupt__: -3, __resume__: -4 };

/** The channel of sends. */
const SENDS = '__pregel_tasks';

/** The scope of operations outside of runs. @type {Scope} */
export const OUTSIDE = Object.freeze({ run: 0, runId: null, wait: true, extra: {} });

/**
 * Makes the checkpointer class over the user's own base class. It keeps nothing: every value is serialised by the
 * library and stored by the server (reference 14.4).
 *
 * @param {any} checkpointModule the module `@langchain/langgraph-checkpoint`
 */
export function saverClass(checkpointModule) {
  return class SlipwaySaver extends checkpointModule.BaseCheckpointSaver {
    /** @param {import('./link.mjs').Link} link @param {Scope} [scope] @param {any} [serde] */
    constructor(link, scope = OUTSIDE, serde = undefined) {
      super(serde);
      this.link = link;
      this.scope = scope;
    }

    /** Unique, and ordered as text like the numbers it replaces. @param {string | number | undefined} current */
    getNextVersion(current) {
      const last = typeof current === 'string' ? parseInt(current, 10) : current ?? 0;
      return `${String(last + 1).padStart(32, '0')}.${String(Math.floor(Math.random() * 1e13)).padStart(13, '0')}`;
    }

    /** @param {any} config */
    async getTuple(config) {
      if (config?.configurable && isMissing(config.configurable.thread_id)) return undefined;
      const { thread_id, checkpoint_ns } = address(config, 'get a checkpoint');
      if (this.scope.freshThread === thread_id) return undefined;
      const checkpoint_id = checkpointId(config) || null;
      const answer = await this.ask({ op: 'checkpoint.get', thread_id, checkpoint_ns, checkpoint_id });
      if (!answer.envelope.tuple) return undefined;
      return this.tuple(answer.envelope.tuple, new Cutter(answer.payload));
    }

    /** @param {any} config @param {any} [options] */
    async *list(config, options = {}) {
      const { thread_id = null, checkpoint_ns = null } = config?.configurable ?? {};
      const before = options.before ? checkpointId(options.before) || null : null;
      const { filter = null, limit = null } = options;
      if (limit !== null && limit <= 0) return;
      const checkpoint_id = checkpointId(config) || null;
      const answer = await this.ask({ op: 'checkpoint.list', thread_id, checkpoint_ns, checkpoint_id, before, filter, limit });
      const cutter = new Cutter(answer.payload);
      for (const tuple of answer.envelope.tuples) yield await this.tuple(tuple, cutter);
    }

    /** @param {any} config @param {any} checkpoint @param {any} metadata @param {Record<string, string | number>} newVersions */
    async put(config, checkpoint, metadata, newVersions) {
      const { thread_id, checkpoint_ns } = address(config, 'put a checkpoint');
      const parent_id = checkpointId(config) || null;
      const { channel_values, ...header } = checkpoint;
      const channels = Object.keys(newVersions ?? {}).filter((channel) => Object.hasOwn(channel_values ?? {}, channel));
      const dumped = await Promise.all(channels.map((channel) => this.serde.dumpsTyped(channel_values[channel])));
      const blobs = dumped.map(([type, bytes], i) => {
        return { channel: channels[i], version: JSON.stringify(newVersions[channels[i]]), type, size: bytes.byteLength };
      });
      const full = { ...this.scope.extra, ...metadata };
      this.scope.onPut?.({ config, checkpoint, metadata: full, parentId: parent_id, ns: checkpoint_ns });
      const operation = { op: 'checkpoint.put', thread_id, checkpoint_ns, checkpoint_id: checkpoint.id, parent_id, header, metadata: full, run_id: this.scope.runId, blobs };
      const writing = this.write(operation, dumped.map(([, bytes]) => bytes));
      if (writing) await writing;
      return { configurable: { thread_id, checkpoint_ns, checkpoint_id: checkpoint.id } };
    }

    /** @param {any} config @param {[string, any][]} writes @param {string} task_id @param {string} [task_path] */
    async putWrites(config, writes, task_id, task_path = '') {
      const { thread_id, checkpoint_ns } = address(config, 'put writes');
      const checkpoint_id = checkpointId(config);
      if (!checkpoint_id) throw new Error('cannot put writes: the config has no "checkpoint_id" in its "configurable"');
      this.scope.onWrites?.(task_id, writes);
      const dumped = await Promise.all(writes.map(([, value]) => this.serde.dumpsTyped(value)));
      const sized = writes.map(([channel], i) => {
        return { index: SPECIAL[channel] ?? i, channel, type: dumped[i][0], size: dumped[i][1].byteLength };
      });
      const operation = { op: 'checkpoint.put_writes', thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, writes: sized };
      const writing = this.write(operation, dumped.map(([, bytes]) => bytes));
      if (writing) await writing;
    }

    /** @param {string} thread_id */
    async deleteThread(thread_id) {
      await this.ask({ op: 'checkpoint.delete_thread', thread_id });
    }

    /** @param {{config: any, channels: string[]}} options */
    async getDeltaChannelHistory({ config, channels }) {
      if (channels.length === 0) return {};
      const { thread_id, checkpoint_ns } = address(config, 'read the history of channels');
      const checkpoint_id = checkpointId(config) || (await this.getTuple(config))?.config.configurable.checkpoint_id;
      if (!checkpoint_id) return Object.fromEntries(channels.map((channel) => [channel, { writes: [] }]));
      const answer = await this.ask({ op: 'checkpoint.delta_history', thread_id, checkpoint_ns, checkpoint_id, channels });
      const cutter = new Cutter(answer.payload);
      /** @type {Record<string, any>} */
      const histories = {};
      for (const history of answer.envelope.channels) histories[history.channel] = await this.history(history, cutter);
      return histories;
    }

    /** @param {any} history @param {Cutter} cutter */
    async history(history, cutter) {
      const seed = history.seed ? { seed: await this.load(history.seed, cutter) } : {};
      return { writes: await this.pending(history.writes, cutter, history.channel), ...seed };
    }

    /** @param {any} stored @param {Cutter} cutter */
    async tuple(stored, cutter) {
      const { thread_id, checkpoint_ns, checkpoint_id } = stored;
      const values = await this.values(stored.values, cutter);
      const pendingWrites = await this.pending(stored.writes, cutter);
      const parent = stored.parent_id ? { parentConfig: { configurable: { thread_id, checkpoint_ns, checkpoint_id: stored.parent_id } } } : {};
      const checkpoint = { ...stored.header, channel_values: values };
      if (checkpoint.v < 4 && stored.parent_id) await this.migrateSends(checkpoint, parent.parentConfig);
      return {
        config: { configurable: { thread_id, checkpoint_ns, checkpoint_id } },
        checkpoint,
        metadata: stored.metadata,
        ...parent,
        pendingWrites: withoutAnswered(pendingWrites),
      };
    }

    /** Before version 4 sends lived in the writes of the parent (reference 14.1). @param {any} checkpoint @param {any} parentConfig */
    async migrateSends(checkpoint, parentConfig) {
      const parent = await this.getTuple(parentConfig);
      const sends = (parent?.pendingWrites ?? []).filter((/** @type {any} */ write) => write[1] === SENDS);
      checkpoint.channel_values[SENDS] = sends.map((/** @type {any} */ write) => write[2]);
      const versions = Object.values(checkpoint.channel_versions ?? {});
      const version = versions.length > 0 ? checkpointModule.maxChannelVersion(...versions) : this.getNextVersion(undefined);
      checkpoint.channel_versions = { ...checkpoint.channel_versions, [SENDS]: version };
    }

    /** @param {any[]} stored @param {Cutter} cutter */
    async values(stored, cutter) {
      const loaded = await Promise.all(stored.map((blob) => this.load(blob, cutter)));
      return Object.fromEntries(stored.map((blob, i) => [blob.channel, loaded[i]]));
    }

    /** @param {any[]} stored @param {Cutter} cutter @param {string} [channel] */
    async pending(stored, cutter, channel = undefined) {
      return Promise.all(stored.map(async (write) => {
        return [write.task_id, write.channel ?? channel, await this.load(write, cutter)];
      }));
    }

    /**
     * A function or a symbol has no JSON: the library's serialiser leaves no bytes of it, and cannot read them.
     *
     * @param {{type: string, size: number}} stored
     * @param {Cutter} cutter
     */
    async load(stored, cutter) {
      const bytes = cutter.take(stored.size);
      return stored.type === 'json' && stored.size === 0 ? undefined : this.serde.loadsTyped(stored.type, bytes);
    }

    /** A read sees every earlier write of this worker. @param {Record<string, any>} operation */
    async ask(operation) {
      return this.watch(this.link.ask({ ...operation, run: this.scope.run }));
    }

    /** @param {Record<string, any>} operation @param {Uint8Array[]} payload @returns {Promise<any> | undefined} nothing for what is only told */
    write(operation, payload) {
      if (this.scope.ended) throw new DOMException('the run is over; its checkpoints cannot change any more', 'AbortError');
      operation.run = this.scope.run;
      if (this.scope.wait) return this.watch(this.link.ask(operation, payload));
      this.link.tell(operation, payload);
      return undefined;
    }

    /** @template T @param {Promise<T>} answer @returns {Promise<T>} */
    async watch(answer) {
      try {
        return await answer;
      } catch (error) {
        if (/** @type {any} */ (error).code === 'stale') this.scope.onStale?.(/** @type {Error} */ (error));
        throw error;
      }
    }
  };
}

/** @param {any} config @param {string} what @returns {{thread_id: string, checkpoint_ns: string}} */
function address(config, what) {
  const thread_id = config?.configurable?.thread_id;
  if (isMissing(thread_id)) {
    throw new Error(`cannot ${what}: the config has no "thread_id" in its "configurable"; a graph with a checkpointer needs one`);
  }
  return { thread_id, checkpoint_ns: config.configurable.checkpoint_ns ?? '' };
}

/**
 * A task that has written its result waits for nothing: where several interrupts wait and some have been answered, only
 * the others are shown.
 *
 * @param {any[]} writes
 */
function withoutAnswered(writes) {
  if (!writes.some(([, channel]) => channel === '__interrupt__')) return writes;
  const answered = new Set(writes.filter(([, channel]) => !(channel in SPECIAL)).map(([taskId]) => taskId));
  return writes.filter(([taskId, channel]) => channel !== '__interrupt__' || !answered.has(taskId));
}

/** @param {unknown} x */
function isMissing(x) {
  return x === undefined || x === null;
}

/** @param {any} config @returns {string} empty for none; `thread_ts` is its older name */
function checkpointId(config) {
  return config?.configurable?.checkpoint_id || config?.configurable?.thread_ts || '';
}
