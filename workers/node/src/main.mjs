#!/usr/bin/env node
import net from 'node:net';

import { Link } from './link.mjs';
import { Worker } from './worker.mjs';

/**
 * The program: one graph worker, started by the agent server with one end of a socket pair (worker/wire/DESIGN.md).
 */
function main() {
  const fd = Number(process.env.SLIPWAY_WORKER_FD);
  if (!Number.isInteger(fd) || fd < 3) {
    process.stderr.write(`SLIPWAY_WORKER_FD is ${JSON.stringify(process.env.SLIPWAY_WORKER_FD)}, but must be the number of a file descriptor; this program is started by slipway\n`);
    process.exit(2);
  }
  delete process.env.SLIPWAY_WORKER_FD;
  const link = new Link(new net.Socket({ fd, readable: true, writable: true }));
  const worker = new Worker(link, process.cwd());
  link.onClose = (error) => void worker.close().finally(() => leave(error));
  process.on('uncaughtException', (error) => worker.escaped(error));
  process.on('unhandledRejection', (reason) => worker.escaped(reason));
  process.on('SIGINT', () => {}); // A terminal's Ctrl-C reaches every process of the group; the server decides what it means.
  worker.hello();
}

/** Without its server a worker has nothing to do. @param {Error} [error] */
function leave(error) {
  if (error) process.stderr.write(`the link to the server failed: ${error.message}\n`);
  process.exit(error ? 1 : 0);
}

main();
