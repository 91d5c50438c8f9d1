import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

import { Decoder, FrameTooLarge, Kind, MAX_FRAME, encode } from '../src/frames.mjs';

const VECTORS = new URL('../../../worker/wire/testdata/vectors.json', import.meta.url);

test('a frame reads as it was written, in whatever pieces it comes', () => {
  const frames = [
    encode(Kind.CHUNK, 7, { event: 'values' }, '{"ä":"é"}'),
    encode(Kind.TELL, 0, { op: 'x' }, [Buffer.from([1, 2]), Buffer.from([3])]),
    encode(Kind.DONE, 0xfffffffe, {}),
  ];
  const all = Buffer.concat(frames);
  for (const size of [1, 2, 5, 13, all.length]) {
    const decoder = new Decoder();
    const got = [];
    for (let at = 0; at < all.length; at += size) got.push(...decoder.push(all.subarray(at, at + size)));
    assert.deepEqual(got.map((f) => [f.kind, f.stream, f.envelope, f.payload.toString('hex')]), [
      [Kind.CHUNK, 7, { event: 'values' }, Buffer.from('{"ä":"é"}').toString('hex')],
      [Kind.TELL, 0, { op: 'x' }, '010203'],
      [Kind.DONE, 0xfffffffe, {}, ''],
    ]);
  }
});

test('frames that are too large are neither sent nor read', () => {
  assert.throws(() => encode(Kind.CHUNK, 1, {}, Buffer.alloc(MAX_FRAME)), FrameTooLarge);
  assert.throws(() => new Decoder().push(Buffer.from('ffffffff', 'hex')), FrameTooLarge);
});

test('malformed frames are refused', () => {
  assert.throws(() => new Decoder().push(Buffer.from('0000000201aa', 'hex')), /malformed/);
  assert.throws(() => new Decoder().push(Buffer.from('000000090100000000000000ff', 'hex')), /malformed/);
});

test('the vectors of the protocol', { skip: !existsSync(VECTORS) && 'the protocol has no vectors yet' }, () => {
  const parsed = JSON.parse(readFileSync(VECTORS, 'utf8'));
  const vectors = Array.isArray(parsed) ? parsed : parsed.vectors ?? parsed.frames;
  assert.ok(vectors.length > 0);
  for (const vector of vectors) checkVector(vector);
});

/** @param {any} v */
function checkVector(v) {
  const whole = Buffer.from(v.hex ?? v.frame, 'hex');
  const [got] = new Decoder().push(whole);
  const envelope = typeof v.envelope === 'string' ? JSON.parse(v.envelope) : v.envelope;
  const payload = v.payload_hex ?? v.payload ?? '';
  assert.deepEqual({ kind: got.kind, stream: got.stream, envelope: got.envelope, payload: got.payload.toString('hex') }, { kind: typeof v.kind === 'string' ? Kind[/** @type {keyof Kind} */ (v.kind)] : v.kind, stream: v.stream, envelope, payload }, v.name);
  const text = whole.subarray(13, 13 + whole.readUInt32BE(9)).toString();
  assert.deepEqual(encode(got.kind, got.stream, text, got.payload), whole, v.name);
}
