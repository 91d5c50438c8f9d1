/**
 * Bare graph.stream with an in-memory saver against the worker program over a fake server, the same trivial graph, the same
 * number of runs in flight. The bare runs are in a child process of their own, so that each side has one.
 *
 *   node bench/trivial.mjs [runs] [in flight] [rounds]
 */
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { startWorker } from '../test/support/fakeserver.mjs';

const [runs = 2000, inFlight = 16, rounds = 3] = process.argv.slice(2).filter((arg) => arg !== 'bare').map(Number);
const SELF = fileURLToPath(import.meta.url);

/**
 * What was measured: runs a second, and milliseconds of processor time a run, which other work on the machine moves less.
 *
 * @typedef {{rate: number, cpu: number}} Figures
 */

/** @param {number | string} pid @returns {number} milliseconds of processor time so far */
function cpuOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** @param {(n: number) => Promise<unknown>} one @param {number | string} pid @returns {Promise<Figures>} */
async function measure(one, pid) {
  const before = cpuOf(pid);
  let next = 0;
  const lane = async () => { while (next < runs) await one(next++); };
  const start = process.hrtime.bigint();
  await Promise.all(Array.from({ length: inFlight }, lane));
  const rate = runs / (Number(process.hrtime.bigint() - start) / 1e9);
  return { rate, cpu: (cpuOf(pid) - before) / runs };
}

/** @returns {Promise<Figures>} */
async function bare() {
  const { MemorySaver } = await import('@langchain/langgraph');
  const { trivial } = await import('./graph.mjs');
  const graph = Object.assign(Object.create(trivial), { checkpointer: new MemorySaver() });
  const one = async (/** @type {number} */ n) => {
    const stream = await graph.stream(input(n), { configurable: { thread_id: `t${n}` }, streamMode: ['values'] });
    for await (const _ of stream);
  };
  await measure(one, process.pid); // Compiled code is what is compared.
  return measure((n) => one(n + runs), process.pid);
}

/** @returns {Promise<Figures>} */
async function worker() {
  const w = await startWorker({ cwd: fileURLToPath(new URL('.', import.meta.url)) });
  const loaded = await w.server.load({ trivial: './graph.mjs:trivial' });
  if (!loaded.graphs.trivial.ok) throw new Error(loaded.graphs.trivial.error.message);
  const one = async (/** @type {number} */ n) => {
    const { done } = await w.server.finish({ graph_id: 'trivial', input: input(n), stream_mode: ['values'] });
    if (done.status !== 'success') throw new Error(JSON.stringify(done));
    w.server.forget();
  };
  const pid = Number(w.child.pid);
  await measure(one, pid);
  const figures = await measure(one, pid);
  await w.stop();
  return figures;
}

/** @param {number} n */
function input(n) {
  return { messages: [{ role: 'user', content: `hello ${n}` }] };
}

/** @returns {Promise<Figures>} */
function bareInChild() {
  return new Promise((resolve, reject) => {
    const child = fork(SELF, ['bare', String(runs), String(inFlight)]);
    child.on('message', (figures) => resolve(/** @type {Figures} */ (figures)));
    child.on('exit', (code) => code && reject(new Error(`the bare runs ended with ${code}`)));
  });
}

/** @param {number[]} list */
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

if (process.argv[2] === 'bare') {
  const figures = await bare();
  process.send?.(figures, () => process.exit(0));
} else {
  /** @type {{bare: Figures, worker: Figures}[]} */
  const pairs = [];
  for (let round = 0; round < rounds; round++) pairs.push({ bare: await bareInChild(), worker: await worker() });
  const of = (/** @type {'bare' | 'worker'} */ who, /** @type {'rate' | 'cpu'} */ what) => Number(median(pairs.map((pair) => pair[who][what])).toFixed(2));
  const result = { runs, in_flight: inFlight, rounds, bare_runs_s: of('bare', 'rate'), worker_runs_s: of('worker', 'rate'), bare_cpu_ms: of('bare', 'cpu'), worker_cpu_ms: of('worker', 'cpu') };
  console.log(`bare    ${result.bare_runs_s} runs/s  ${result.bare_cpu_ms} ms of processor a run`);
  console.log(`worker  ${result.worker_runs_s} runs/s  ${result.worker_cpu_ms} ms of processor a run`);
  console.log(JSON.stringify(result));
}
