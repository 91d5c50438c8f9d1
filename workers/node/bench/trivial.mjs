/**
 * Bare graph.stream with an in-memory saver against the worker program over a fake server, the same trivial graph, the same
 * number of runs in flight. The bare runs are in a child process of their own, so that each side has one.
 *
 *   node bench/trivial.mjs [runs] [in flight] [rounds]
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { startWorker } from '../test/support/fakeserver.mjs';

const [runs = 2000, inFlight = 16, rounds = 3] = process.argv.slice(2).filter((arg) => arg !== 'bare').map(Number);
const SELF = fileURLToPath(import.meta.url);

/** @param {(n: number) => Promise<unknown>} one @returns {Promise<number>} runs a second */
async function measure(one) {
  let next = 0;
  const lane = async () => { while (next < runs) await one(next++); };
  const start = process.hrtime.bigint();
  await Promise.all(Array.from({ length: inFlight }, lane));
  return runs / (Number(process.hrtime.bigint() - start) / 1e9);
}

/** @returns {Promise<number>} */
async function bare() {
  const { MemorySaver } = await import('@langchain/langgraph');
  const { trivial } = await import('./graph.mjs');
  const graph = Object.assign(Object.create(trivial), { checkpointer: new MemorySaver() });
  const one = async (/** @type {number} */ n) => {
    const stream = await graph.stream(input(n), { configurable: { thread_id: `t${n}` }, streamMode: ['values'] });
    for await (const _ of stream);
  };
  await measure(one); // Compiled code is what is compared.
  return measure((n) => one(n + runs));
}

/** @returns {Promise<number>} */
async function worker() {
  const w = await startWorker({ cwd: fileURLToPath(new URL('.', import.meta.url)) });
  const loaded = await w.server.load({ trivial: './graph.mjs:trivial' });
  if (!loaded.graphs.trivial.ok) throw new Error(loaded.graphs.trivial.error.message);
  const one = async (/** @type {number} */ n) => {
    const { done } = await w.server.finish({ graph_id: 'trivial', input: input(n), stream_mode: ['values'] });
    if (done.status !== 'success') throw new Error(JSON.stringify(done));
    w.server.forget();
  };
  await measure(one);
  const rate = await measure(one);
  await w.stop();
  return rate;
}

/** @param {number} n */
function input(n) {
  return { messages: [{ role: 'user', content: `hello ${n}` }] };
}

/** @returns {Promise<number>} */
function bareInChild() {
  return new Promise((resolve, reject) => {
    const child = fork(SELF, ['bare', String(runs), String(inFlight)]);
    child.on('message', (rate) => resolve(Number(rate)));
    child.on('exit', (code) => code && reject(new Error(`the bare runs ended with ${code}`)));
  });
}

/** @param {number[]} list */
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

if (process.argv[2] === 'bare') {
  const rate = await bare();
  process.send?.(rate, () => process.exit(0));
} else {
  const bareRates = [];
  const workerRates = [];
  for (let round = 0; round < rounds; round++) {
    bareRates.push(await bareInChild());
    workerRates.push(await worker());
  }
  const result = { runs, in_flight: inFlight, rounds, bare_runs_s: Math.round(median(bareRates)), worker_runs_s: Math.round(median(workerRates)) };
  console.log(`bare ${result.bare_runs_s} runs/s, worker ${result.worker_runs_s} runs/s, ${(result.worker_runs_s / result.bare_runs_s).toFixed(2)} of bare`);
  console.log(JSON.stringify(result));
}
