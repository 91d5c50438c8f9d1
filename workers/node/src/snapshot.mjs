import { checkpointOf } from './config.mjs';
import { toJSON } from './json.mjs';

/**
 * ThreadStates as clients read them (reference 3, 14.6).
 *
 * @param {any} state the library's StateSnapshot
 * @returns {any}
 */
export function threadState(state) {
  const tasks = (state.tasks ?? []).map(taskOf);
  return {
    values: state.values ?? {},
    next: state.next ?? [],
    tasks,
    interrupts: tasks.flatMap((/** @type {any} */ task) => task.interrupts),
    metadata: state.metadata ?? {},
    created_at: state.createdAt ?? null,
    checkpoint: checkpointOf(state.config),
    parent_checkpoint: checkpointOf(state.parentConfig),
  };
}

/** Every key is always there: remote graphs index them without checking. @param {any} task */
function taskOf(task) {
  const nested = task.state && 'values' in task.state ? threadState(task.state) : null;
  return {
    id: task.id,
    name: task.name,
    path: task.path ?? [],
    error: errorText(task.error),
    interrupts: task.interrupts ?? [],
    checkpoint: nested ? null : checkpointOf(task.state),
    state: nested,
    result: task.result ?? null,
  };
}

/** @param {any} error what the library wrote for a failed task */
function errorText(error) {
  if (error === undefined || error === null) return null;
  if (typeof error !== 'object') return String(error);
  return error.name ? `${error.name}: ${error.message}` : String(error.message ?? toJSON(error));
}

/**
 * The snapshot of a run that ended without interrupt, breakpoint or error: nothing is next, and what the graph would
 * say is known already.
 *
 * @param {string} values JSON
 * @param {import('./saver.mjs').Put} put the run's last checkpoint
 * @returns {string} JSON
 */
export function finalSnapshot(values, put) {
  const { thread_id } = put.config.configurable;
  const checkpoint = checkpointOf({ configurable: { thread_id, checkpoint_ns: put.ns, checkpoint_id: put.checkpoint.id } });
  const parent = put.parentId === null ? null : { ...checkpoint, checkpoint_id: put.parentId };
  const rest = {
    next: [],
    tasks: [],
    interrupts: [],
    metadata: { ...put.metadata, thread_id },
    created_at: put.checkpoint.ts,
    checkpoint,
    parent_checkpoint: parent,
  };
  return `{"values":${values},${JSON.stringify(rest).slice(1)}`;
}
