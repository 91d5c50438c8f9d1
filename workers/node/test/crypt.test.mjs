import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';

import { NotAuthentic, open, seal } from '../src/eax.mjs';
import { startWorker } from './support/fakeserver.mjs';

const KEY = 'sixteen byte key';

/** @type {Awaited<ReturnType<typeof startWorker>>} */
let w;
/** @type {any} */
let loaded;
before(async () => {
  w = await startWorker({ env: { LANGGRAPH_AES_KEY: KEY, LANGGRAPH_AES_JSON_KEYS: 'secret, token' } });
  loaded = await w.server.load({ asks: './graphs.mjs:asks', cached: './graphs.mjs:cached' }, { encryption: { aes: true } });
});
after(() => w.stop());

// Of the paper that describes the mode: message, key, nonce, header, cipher text and tag.
const VECTORS = [
  ['', '233952DEE4D5ED5F9B9C6D6FF80FF478', '62EC67F9C3A4A407FCB2A8C49031A8B3', '6BFB914FD07EAE6B', '', 'E037830E8389F27B025A2D6527E79D01'],
  ['F7FB', '91945D3F4DCBEE0BF45EF52255F095A4', 'BECAF043B0A23D843194BA972C66DEBD', 'FA3BFD4806EB53FA', '19DD', '5C4C9331049D0BDAB0277408F67967E5'],
  ['CA40D7446E545FFAED3BD12A740A659FFBBB3CEAB7', '8395FCF1E95BEBD697BD010BC766AAC3', '22E7ADD93CFC6393C57EC0B3C17D6B44', '126735FCC320D25A', 'CB8920F87A6C75CFF39627B56E3ED197C552D295A7', 'CFC46AFC253B4652B1AF3795B124AB6E'],
];

test('the mode is what its paper says', () => {
  for (const vector of VECTORS) {
    const [text, key, nonce, header, cipher, tag] = vector.map((hex) => Buffer.from(hex, 'hex'));
    assert.deepEqual(seal(key, nonce, text, header), { cipher, tag });
    assert.deepEqual(open(key, nonce, cipher, tag, header), text);
    assert.throws(() => open(key, nonce, Buffer.concat([cipher, Buffer.from([1])]), tag, header), NotAuthentic);
  }
});

test('checkpoints are encrypted before they travel, and read again', async () => {
  assert.deepEqual(loaded.parts.encryption, { ok: true, json: true, blob: true });
  const thread_id = randomUUID();
  await w.server.finish({ graph_id: 'asks', thread_id, input: { note: 'clear words' } });
  const stored = [...w.server.storage.blobs.values(), ...[...w.server.storage.writes.values()].flatMap((writes) => [...writes.values()])];
  assert.ok(stored.length > 3);
  for (const { type, bytes } of stored) {
    assert.match(type, /\+aes$/);
    assert.ok(!bytes.includes('clear words') && !bytes.includes('ok?'));
  }
  const { snapshot } = await w.server.finish({ graph_id: 'asks', thread_id, command: { resume: 'yes' } });
  assert.deepEqual(snapshot.values, { x: 1, note: 'yes' });
});

test('results of nodes in the cache are encrypted, too', async () => {
  const note = async () => (await w.server.finish({ graph_id: 'cached', input: { x: 1 } })).snapshot.values.note;
  assert.equal(await note(), await note());
  assert.deepEqual([...w.server.storage.cached.values()].map(({ type }) => type), ['json+aes']);
});

test('chosen members of JSON are hidden, wherever they are', async () => {
  const crypt = async (/** @type {string} */ verb, /** @type {any} */ value, kind = 'json') => (await w.server.call({ verb, kind, value, model: 'thread', field: 'metadata', context: {} })).result;
  const clear = { a: 1, secret: { deep: [1] }, list: [{ token: 't', other: null }] };
  const hidden = await crypt('crypt.encrypt', clear);
  assert.deepEqual([hidden.a, hidden.list[0].other], [1, null]);
  for (const text of [hidden.secret, hidden.list[0].token]) assert.match(text, /^slipway:aes:/);
  assert.deepEqual(await crypt('crypt.decrypt', hidden), clear);
  assert.deepEqual(await crypt('crypt.decrypt', clear), clear);
  const blob = Buffer.from('bytes').toString('base64');
  assert.equal(await crypt('crypt.decrypt', await crypt('crypt.encrypt', blob, 'blob'), 'blob'), blob);
  // What a worker for Python wrote with this key.
  assert.deepEqual(await crypt('crypt.decrypt', { secret: PYTHON }), { secret: { deep: [1, 'ä'] } });
});

const PYTHON = 'slipway:aes:7MxFmW80NqAR5OQ0yynT2a7GLzeYrYjJxNRczaInsl7fkEV20duBJeWN3kHzRWS1w0nm';

test('keys of a wrong length and handlers are refused', async () => {
  const said = async (/** @type {any} */ env, /** @type {any} */ encryption) => {
    const other = await startWorker({ env });
    const { parts } = await other.server.load({}, { encryption });
    await other.stop();
    return parts.encryption.error.message;
  };
  assert.match(await said({ LANGGRAPH_AES_KEY: 'short' }, { aes: true }), /has 5 bytes: it must have 16, 24 or 32/);
  assert.match(await said({}, { path: './parts.mjs:auth' }), /encryption handlers are written in Python; set LANGGRAPH_AES_KEY/);
});
