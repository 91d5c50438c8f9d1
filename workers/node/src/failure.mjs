/**
 * What a client is told about an exception: its type and its message.
 *
 * @typedef {{error: string, message: string, trace?: string}} Failure
 * @param {unknown} thrown anything: JavaScript lets code throw whatever it likes
 * @returns {Failure}
 */
export function failureOf(thrown) {
  if (thrown instanceof Error || isErrorLike(thrown)) {
    const error = /** @type {Error} */ (thrown);
    return { error: error.name || 'Error', message: String(error.message) };
  }
  return { error: 'Error', message: typeof thrown === 'string' ? thrown : `a value that is no Error was thrown: ${describe(thrown)}` };
}

/** The stack of an exception where there is one. @param {unknown} thrown @returns {string} */
export function traceOf(thrown) {
  const stack = isErrorLike(thrown) ? /** @type {Error} */ (thrown).stack : undefined;
  return stack ?? failureOf(thrown).message;
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
