import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Which run the current code belongs to; nothing outside of runs.
 *
 * @type {AsyncLocalStorage<{run: number}>}
 */
export const CURRENT = new AsyncLocalStorage();

/** The stream of the run the current code belongs to, 0 outside of runs. */
export function currentRun() {
  return CURRENT.getStore()?.run ?? 0;
}
