import net from 'node:net';

import * as checkpoint from '@langchain/langgraph-checkpoint';
import { deltaChannelHistoryTests, specTest } from '@langchain/langgraph-checkpoint-validation';

import { saverClass } from '../../src/saver.mjs';
import { Link } from '../../src/link.mjs';
import { connect } from '../support/fakeserver.mjs';

const Saver = saverClass(checkpoint);

// A real agent server at the other end (worker.mjs), or a fake one.
const port = process.env.SLIPWAY_CONFORMANCE_PORT;
const real = port ? new Link(net.connect(Number(port), '127.0.0.1')) : undefined;

/** The published conformance suite (reference 14.6), each test with a saver over an empty server. */
const initializer = {
  checkpointerName: 'slipway',
  createCheckpointer: () => (real ? emptied(new Saver(real)) : new Saver(connect().link)),
};

/** Removes what earlier tests have left. @param {any} saver */
async function emptied(saver) {
  const threads = new Set();
  for await (const { config } of saver.list({ configurable: {} })) threads.add(config.configurable.thread_id);
  for (const thread of threads) await saver.deleteThread(thread);
  return saver;
}

specTest(initializer, ['getTuple', 'list', 'put', 'putWrites', 'deleteThread']);
deltaChannelHistoryTests(initializer);
