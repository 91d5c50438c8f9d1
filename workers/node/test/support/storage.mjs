import { Cutter } from '../../src/link.mjs';

/**
 * The storage operations of the protocol over maps: what the Go server does, small enough to be read.
 */
export class Storage {
  /** @type {Map<string, any>} */
  checkpoints = new Map();
  /** The key of the newest checkpoint of each thread and namespace. @type {Map<string, string>} */
  #latest = new Map();
  /** @type {Map<string, {type: string, bytes: Buffer}>} */
  blobs = new Map();
  /** Of each checkpoint. @type {Map<string, Map<string, any>>} */
  writes = new Map();
  /** @type {Map<string, any>} */
  items = new Map();
  /** @type {Map<string, any>} */
  cached = new Map();

  /**
   * @param {any} op an ASK or TELL envelope
   * @param {Buffer} payload
   * @returns {{envelope: any, payload?: Uint8Array[]}}
   */
  apply(op, payload) {
    const cutter = new Cutter(Buffer.from(payload));
    switch (op.op) {
      case 'checkpoint.put': return this.#put(op, cutter);
      case 'checkpoint.put_writes': return this.#putWrites(op, cutter);
      case 'checkpoint.get': return this.#get(op);
      case 'checkpoint.list': return this.#list(op);
      case 'checkpoint.delete_thread': return this.#deleteThread(op);
      case 'checkpoint.delta_history': return this.#history(op);
      case 'store.batch': return { envelope: { ok: true, results: op.ops.map((/** @type {any} */ o) => this.#item(o)) } };
      case 'cache.get': return this.#cacheGet(op);
      case 'cache.set': return this.#cacheSet(op, cutter);
      case 'cache.clear': this.cached.clear(); return { envelope: { ok: true } };
      default: return { envelope: { ok: false, error: { error: 'Error', message: `unknown op ${op.op}`, code: 'invalid' } } };
    }
  }

  #put(/** @type {any} */ op, /** @type {Cutter} */ cutter) {
    for (const { channel, version, type, size } of op.blobs) {
      const key = JSON.stringify([op.thread_id, op.checkpoint_ns, channel, version]);
      const blob = { type, bytes: Buffer.from(cutter.take(size)) };
      if (!this.blobs.has(key)) this.blobs.set(key, blob);
    }
    const { thread_id, checkpoint_ns, checkpoint_id, parent_id, header, metadata, run_id } = op;
    const place = JSON.stringify([thread_id, checkpoint_ns]);
    const latest = this.checkpoints.get(this.#latest.get(place) ?? '');
    if (!latest || latest.checkpoint_id <= checkpoint_id) this.#latest.set(place, keyOf(op));
    this.checkpoints.set(keyOf(op), { thread_id, checkpoint_ns, checkpoint_id, parent_id, header, metadata, run_id });
    return { envelope: { ok: true } };
  }

  #putWrites(/** @type {any} */ op, /** @type {Cutter} */ cutter) {
    const all = op.writes.every((/** @type {any} */ w) => w.index < 0);
    for (const { index, channel, type, size } of op.writes) {
      const key = JSON.stringify([op.task_id, index]);
      const bytes = Buffer.from(cutter.take(size));
      const writes = this.writes.get(keyOf(op)) ?? new Map();
      this.writes.set(keyOf(op), writes);
      if (all || !writes.has(key)) writes.set(key, { thread_id: op.thread_id, task_id: op.task_id, task_path: op.task_path, index, channel, type, bytes });
    }
    return { envelope: { ok: true } };
  }

  #get(/** @type {any} */ op) {
    const found = op.checkpoint_id === null ? this.checkpoints.get(this.#latest.get(JSON.stringify([op.thread_id, op.checkpoint_ns])) ?? '') : this.checkpoints.get(keyOf(op));
    if (!found) return { envelope: { ok: true, tuple: null } };
    const { tuple, payload } = this.#tuple(found);
    return { envelope: { ok: true, tuple }, payload };
  }

  #list(/** @type {any} */ op) {
    const wanted = this.#sorted().filter((c) =>
      (op.thread_id === null || c.thread_id === op.thread_id) &&
      (op.checkpoint_ns === null || c.checkpoint_ns === op.checkpoint_ns) &&
      (op.checkpoint_id === null || c.checkpoint_id === op.checkpoint_id) &&
      (op.before === null || c.checkpoint_id < op.before) &&
      Object.entries(op.filter ?? {}).every(([k, v]) => JSON.stringify(c.metadata[k]) === JSON.stringify(v)));
    const tuples = wanted.slice(0, op.limit ?? wanted.length).map((c) => this.#tuple(c));
    return { envelope: { ok: true, tuples: tuples.map((t) => t.tuple) }, payload: tuples.flatMap((t) => t.payload) };
  }

  #sorted() {
    return [...this.checkpoints.values()].sort((a, b) => (a.checkpoint_id < b.checkpoint_id ? 1 : a.checkpoint_id > b.checkpoint_id ? -1 : 0));
  }

  #writesOf(/** @type {any} */ checkpoint) {
    const of = [...(this.writes.get(keyOf(checkpoint))?.values() ?? [])];
    return of.sort((a, b) => (a.task_id < b.task_id ? -1 : a.task_id > b.task_id ? 1 : a.index - b.index));
  }

  #tuple(/** @type {any} */ c) {
    const values = Object.entries(c.header.channel_versions ?? {}).flatMap(([channel, version]) => {
      const blob = this.blobs.get(JSON.stringify([c.thread_id, c.checkpoint_ns, channel, JSON.stringify(version)]));
      return blob ? [{ channel, version: JSON.stringify(version), ...blob }] : [];
    });
    const writes = this.#writesOf(c);
    const { run_id: _, ...rest } = c;
    return { tuple: { ...rest, values: values.map(sized), writes: writes.map(sized) }, payload: [...values, ...writes].map((x) => x.bytes) };
  }

  #deleteThread(/** @type {any} */ { thread_id }) {
    for (const [key, c] of this.checkpoints) if (c.thread_id === thread_id) this.checkpoints.delete(key);
    for (const key of this.writes.keys()) if (JSON.parse(key)[0] === thread_id) this.writes.delete(key);
    for (const key of this.#latest.keys()) if (JSON.parse(key)[0] === thread_id) this.#latest.delete(key);
    for (const key of this.blobs.keys()) if (JSON.parse(key)[0] === thread_id) this.blobs.delete(key);
    return { envelope: { ok: true } };
  }

  #history(/** @type {any} */ op) {
    const channels = op.channels.map((/** @type {string} */ channel) => this.#channelHistory(op, channel));
    const payload = channels.flatMap((/** @type {any} */ c) => [...(c.seed ? [c.seed] : []), ...c.writes].map((x) => x.bytes));
    const strip = (/** @type {any} */ c) => ({ channel: c.channel, seed: c.seed && sized(c.seed), writes: c.writes.map(sized) });
    return { envelope: { ok: true, channels: channels.map(strip) }, payload };
  }

  #channelHistory(/** @type {any} */ op, /** @type {string} */ channel) {
    const at = (/** @type {any} */ id) => this.checkpoints.get(keyOf({ ...op, checkpoint_id: id }));
    /** @type {any[]} */
    let writes = [];
    for (let c = at(at(op.checkpoint_id)?.parent_id); c; c = at(c.parent_id)) {
      writes = [...this.#writesOf(c).filter((w) => w.channel === channel), ...writes];
      const seed = this.blobs.get(JSON.stringify([c.thread_id, c.checkpoint_ns, channel, JSON.stringify(c.header.channel_versions[channel])]));
      if (seed) return { channel, seed, writes };
    }
    return { channel, seed: null, writes };
  }

  #item(/** @type {any} */ op) {
    const now = '2026-01-02T03:04:05.000Z';
    if (op.put) {
      const key = JSON.stringify([op.put.namespace, op.put.key]);
      if (op.put.value === null) this.items.delete(key);
      else this.items.set(key, { namespace: op.put.namespace, key: op.put.key, value: op.put.value, created_at: now, updated_at: now });
      return {};
    }
    if (op.get) return { item: this.items.get(JSON.stringify([op.get.namespace, op.get.key])) ?? null };
    if (op.search) {
      const { namespace_prefix, limit, offset } = op.search;
      return { items: [...this.items.values()].filter((i) => namespace_prefix.every((/** @type {string} */ p, /** @type {number} */ n) => i.namespace[n] === p)).slice(offset, offset + limit) };
    }
    const namespaces = new Set([...this.items.values()].map((i) => JSON.stringify(i.namespace.slice(0, op.namespaces.max_depth))));
    return { namespaces: [...namespaces].map((n) => JSON.parse(n)) };
  }

  #cacheGet(/** @type {any} */ op) {
    const hits = op.keys.flatMap((/** @type {any} */ key, /** @type {number} */ index) => {
      const hit = this.cached.get(JSON.stringify(key));
      return hit ? [{ index, ...hit }] : [];
    });
    return { envelope: { ok: true, hits: hits.map(sized) }, payload: hits.map((/** @type {any} */ h) => h.bytes) };
  }

  #cacheSet(/** @type {any} */ op, /** @type {Cutter} */ cutter) {
    for (const { namespace, key, type, size } of op.entries) this.cached.set(JSON.stringify([namespace, key]), { type, bytes: Buffer.from(cutter.take(size)) });
    return { envelope: { ok: true } };
  }
}

/** @param {any} x */
function keyOf(x) {
  return JSON.stringify([x.thread_id, x.checkpoint_ns, x.checkpoint_id]);
}

/** @param {any} x */
function sized({ bytes, thread_id: _t, ...rest }) {
  return { ...rest, size: bytes.byteLength };
}
