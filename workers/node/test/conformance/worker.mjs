// The published saver conformance suite as a worker of a real agent server: it says hello, runs the suite over its link
// and prints one line with what became of it.
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import path from 'node:path';
import { startVitest } from 'vitest/node';

import { Kind } from '../../src/frames.mjs';
import { Link } from '../../src/link.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const server = new net.Socket({ fd: Number(process.env.SLIPWAY_WORKER_FD) });
const link = new Link(server);
link.onFrame = ({ kind }) => {
  if (kind === Kind.LOAD) link.send(Kind.LOADED, 0, { graphs: {}, warnings: [] });
};
link.onClose = () => process.exit(1);
link.send(Kind.HELLO, 0, { protocol: 1, language: 'node', pid: process.pid, versions: {} });

// The suite runs in threads of this process; each test file gets at the server through a socket of its own, whose bytes
// are passed on here. Only one speaks at a time: there is one file.
const door = net.createServer((client) => {
  server.removeAllListeners('data');
  server.pipe(client);
  client.on('data', (piece) => server.write(piece));
  client.on('error', () => {});
});
await new Promise((resolve) => { door.listen(0, '127.0.0.1', () => resolve(undefined)); });
process.env.SLIPWAY_CONFORMANCE_PORT = String(/** @type {net.AddressInfo} */ (door.address()).port);

const vitest = await startVitest('test', [], { root: path.join(here, '..', '..'), dir: here, globals: true, watch: false, pool: 'threads', reporters: ['dot'] });
const files = vitest?.state.getFiles() ?? [];
/** @type {string[]} */
const missed = [];
let passed = 0;
/** @param {any} task */
const count = (task) => {
  if (task.tasks) task.tasks.forEach(count);
  else if (task.result?.state === 'pass') passed++;
  else if (task.mode === 'run') missed.push(task.name);
};
files.forEach(count);
console.log(`conformance: ${passed} tests; missed {${missed.join('; ')}}${passed ? '' : ' everything'}`);
