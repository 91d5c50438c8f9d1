import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
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

test('the vectors of the protocol', () => {
  const vectors = JSON.parse(readFileSync(VECTORS, 'utf8'));
  assert.ok(vectors.length > 0);
  for (const vector of vectors) checkVector(vector);
});

/** @param {{name: string, kind: number, stream: number, envelope: string, payload_hex: string, frame_hex: string}} vector */
function checkVector({ name, kind, stream, envelope, payload_hex, frame_hex }) {
  const [got] = new Decoder().push(Buffer.from(frame_hex, 'hex'));
  assert.deepEqual({ ...got, payload: got.payload.toString('hex') }, { kind, stream, envelope: JSON.parse(envelope), payload: payload_hex }, name);
  assert.equal(encode(kind, stream, envelope, Buffer.from(payload_hex, 'hex')).toString('hex'), frame_hex, name);
}
