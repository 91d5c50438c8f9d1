/**
 * The frames of mode `messages`, derived from the library's message chunks and the state (reference 10.1):
 * `messages/metadata` once per streamed message, `messages/partial` with all of it so far, `messages/complete` once per
 * message that is final.
 *
 * @typedef {(event: string, payload: any) => Promise<void>} Emit
 */
export class MessageStream {
  /** Messages being streamed, by id. @type {Map<string, any>} */
  #growing = new Map();
  /** @type {Set<string>} */
  #complete = new Set();

  /** @param {any} message @param {any} metadata @param {Emit} emit */
  async chunk(message, metadata, emit) {
    if (message?.id === undefined || message.id === null) return;
    if (typeof message.concat !== 'function') return this.#finish([message], emit);
    const before = this.#growing.get(message.id);
    if (before === undefined) await emit('messages/metadata', { [message.id]: { metadata: withoutTags(metadata) } });
    const whole = before === undefined ? message : before.concat(message);
    this.#growing.set(message.id, whole);
    await emit('messages/partial', [whole]);
  }

  /** @param {any} values a state @param {Emit} emit */
  async values(values, emit) {
    if (typeof values !== 'object' || values === null) return;
    await this.#finish(Object.values(values).flat().filter(isMessage), emit);
  }

  /** @param {any[]} messages @param {Emit} emit */
  async #finish(messages, emit) {
    const fresh = messages.filter((message) => message.id && !this.#complete.has(message.id));
    if (fresh.length === 0) return;
    for (const { id } of fresh) {
      this.#complete.add(id);
      this.#growing.delete(id);
    }
    await emit('messages/complete', fresh);
  }
}

/** Tags stand beside each chunk, not in the metadata that is told once. @param {any} metadata */
function withoutTags({ tags: _, ...metadata }) {
  return metadata;
}

/** @param {any} x */
function isMessage(x) {
  return typeof x?.getType === 'function' && typeof x.toDict === 'function';
}

/** Whether user code asked not to stream this. @param {any} metadata */
export function isHidden(metadata) {
  const tags = metadata?.tags ?? [];
  return tags.includes('nostream') || tags.includes('langsmith:nostream') || tags.includes('langsmith:hidden');
}
