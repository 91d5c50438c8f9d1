/**
 * The frames of mode `lifecycle`: when each subgraph starts and how it ends (reference 10.1). A subgraph starts with its
 * first chunk and ends with the result of the task it runs in.
 *
 * @typedef {import('./failure.mjs').Failure} Failure
 * @typedef {(namespace: string[], payload: any) => Promise<void>} EmitLifecycle
 */
export class Lifecycle {
  /** Running subgraphs by their joined namespace. @type {Map<string, string[]>} */
  #open = new Map();
  /** @type {Set<string>} */
  #seen = new Set();
  #emit;

  /** @param {EmitLifecycle} emit */
  constructor(emit) {
    this.#emit = emit;
  }

  /** Sees that something comes from this namespace. @param {string[]} namespace */
  async saw(namespace) {
    for (let depth = 1; depth <= namespace.length; depth++) {
      const ns = namespace.slice(0, depth);
      const key = ns.join('|');
      if (this.#seen.has(key)) continue;
      this.#seen.add(key);
      this.#open.set(key, ns);
      await this.#emit(ns, { event: 'started', namespace: ns });
    }
  }

  /** Sees the result of a task. @param {any} task its end, from mode `tasks` */
  async taskEnded(task) {
    for (const [key, ns] of this.#open) {
      if (!ns[ns.length - 1].endsWith(`:${task.id}`)) continue;
      this.#open.delete(key);
      await this.#emit(ns, { ...outcome(task), namespace: ns });
    }
  }

  /** Sees the end of the run: what still runs ends with it. @param {'completed' | 'failed' | 'interrupted'} event @param {Failure} [error] */
  async runEnded(event, error) {
    for (const ns of [...this.#open.values()].reverse()) {
      await this.#emit(ns, { event, namespace: ns, ...(error ? { error } : {}) });
    }
    this.#open.clear();
  }
}

/** @param {any} task */
function outcome(task) {
  if (task.error) return { event: 'failed', error: task.error };
  return { event: task.interrupts?.length > 0 ? 'interrupted' : 'completed' };
}
