/**
 * JSON as clients read it: messages are flattened to `{...fields, type}`, sets and maps become arrays and objects,
 * errors their name and message (agent-server reference 13).
 */

/**
 * @param {unknown} value
 * @returns {string} one line of JSON; `null` for what has no JSON at all
 */
export function toJSON(value) {
  try {
    return JSON.stringify(value, replace) ?? 'null';
  } catch (error) {
    if (error instanceof TypeError && /circular/i.test(error.message)) return JSON.stringify(value, withoutCycles()) ?? 'null';
    throw error;
  }
}

/**
 * A replacer sees a value after its toJSON() has run; the value itself is in its holder.
 *
 * @this {any}
 * @param {string} key
 * @param {any} value
 */
function replace(key, value) {
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? String(value) : value;
  if (Array.isArray(value)) return value;
  const original = this[key];
  if (typeof original !== 'object' || original === null) return value;
  const proto = Object.getPrototypeOf(original);
  return proto === Object.prototype || proto === null ? value : flatten(original, value);
}

/** @param {any} original @param {any} value */
function flatten(original, value) {
  if (typeof original.toDict === 'function') return flattenMessage(original, value);
  if (original instanceof Map) return Object.fromEntries(original);
  if (original instanceof Set) return [...original];
  if (original instanceof Error) return { name: original.name, message: original.message };
  if (original instanceof Uint8Array && !Buffer.isBuffer(original)) return { type: 'Buffer', data: [...original] };
  return value;
}

/**
 * toDict() is the type beside the fields of toJSON(), which has run already: running it again would double the work.
 *
 * @param {any} message
 * @param {any} value
 */
function flattenMessage(message, value) {
  if (value?.lc === 1 && value.kwargs && typeof message.getType === 'function') return { ...value.kwargs, type: message.getType() };
  const dict = message.toDict();
  if (typeof dict?.data !== 'object' || typeof dict.type !== 'string') return value;
  return { ...dict.data, type: dict.type };
}

/** A replacer that writes "[Circular]" where an object holds itself. */
function withoutCycles() {
  /** @type {object[]} */
  const path = [];
  return /** @this {any} @param {string} key @param {any} value */ function (key, value) {
    const plain = replace.call(this, key, value);
    if (typeof plain !== 'object' || plain === null) return plain;
    while (path.length > 0 && path[path.length - 1] !== this) path.pop();
    if (path.includes(plain)) return '[Circular]';
    path.push(plain);
    return plain;
  };
}
