/**
 * What a client is told about an exception: its type and its message.
 *
 * @typedef {{error: string, message: string, trace?: string}} Failure
 */

/** Of a message: it is kept with the run and its thread, and told with each of them. */
const LONGEST = 64 * 1024;

/**
 * Never throws, whatever the getters of an exception do.
 *
 * @param {unknown} thrown anything: JavaScript lets code throw whatever it likes
 * @returns {Failure}
 */
export function failureOf(thrown) {
  try {
    const { error, message } = read(thrown);
    return { error, message: message.length > LONGEST ? `${message.slice(0, LONGEST)}... (${message.length} characters)` : message };
  } catch {
    return { error: 'Error', message: 'something was thrown that cannot be read' };
  }
}

/**
 * What was thrown, or an error in its place where it cannot even be asked what it is.
 *
 * @param {unknown} thrown
 * @returns {unknown}
 */
export function readable(thrown) {
  try {
    if (thrown instanceof Error || isErrorLike(thrown)) read(thrown);
    return thrown;
  } catch {
    return new Error('something was thrown that cannot be read');
  }
}

/** The stack of an exception where there is one. @param {unknown} thrown @returns {string} */
export function traceOf(thrown) {
  try {
    const stack = isErrorLike(thrown) ? /** @type {Error} */ (thrown).stack : undefined;
    if (stack !== undefined) return String(stack);
  } catch {
    // The getter of a stack may throw as well.
  }
  return failureOf(thrown).message;
}

/** @param {unknown} thrown @returns {{error: string, message: string}} */
function read(thrown) {
  if (thrown instanceof Error || isErrorLike(thrown)) {
    const error = /** @type {Error} */ (thrown);
    return { error: String(error.name || 'Error'), message: String(error.message) };
  }
  return { error: 'Error', message: typeof thrown === 'string' ? thrown : `a value that is no Error was thrown: ${describe(thrown)}` };
}

/** @param {unknown} x */
function isErrorLike(x) {
  return typeof x === 'object' && x !== null && 'message' in x && typeof x.message === 'string';
}

/** @param {unknown} x */
function describe(x) {
  try {
    return JSON.stringify(x) ?? String(x);
  } catch {
    return String(x);
  }
}
