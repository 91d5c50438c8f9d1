import * as checkpoint from '@langchain/langgraph-checkpoint';
import { deltaChannelHistoryTests, specTest } from '@langchain/langgraph-checkpoint-validation';

import { saverClass } from '../../src/saver.mjs';
import { connect } from '../support/fakeserver.mjs';

const Saver = saverClass(checkpoint);

/** The published conformance suite (reference 14.6), each test with a saver over an empty server of its own. */
const initializer = {
  checkpointerName: 'slipway',
  createCheckpointer: () => new Saver(connect().link),
};

specTest(initializer, ['getTuple', 'list', 'put', 'putWrites', 'deleteThread']);
deltaChannelHistoryTests(initializer);
