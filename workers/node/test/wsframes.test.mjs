import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FrameReader, Op, closing, frame } from '../src/wsframes.mjs';

/** A frame of a server, which does not mask. @param {number} first @param {Buffer} data */
function served(first, data) {
  const written = frame(first & 0x0f, data);
  const masked = data.length + 4;
  const head = Buffer.from(written.subarray(0, written.length - masked));
  head[0] = first;
  head[1] &= 0x7f;
  return Buffer.concat([head, data]);
}

test('messages of every length are read, in whatever pieces they come', () => {
  const lengths = [0, 1, 125, 126, 65535, 65536, 200_000];
  const all = Buffer.concat(lengths.map((n) => served(0x80 | Op.BINARY, Buffer.alloc(n, n % 251))));
  for (const size of [7, 4096, all.length]) {
    const reader = new FrameReader();
    const got = [];
    for (let at = 0; at < all.length; at += size) got.push(...reader.push(all.subarray(at, at + size)));
    assert.deepEqual(got.map(({ data }) => data.length), lengths);
    assert.ok(got.every(({ op, data }) => op === Op.BINARY && data.every((byte) => byte === data.length % 251)));
  }
});

test('parts make one message, with what comes in between', () => {
  const reader = new FrameReader();
  const bytes = [served(Op.TEXT, Buffer.from('one ')), served(0x80 | Op.PING, Buffer.from('?')), served(Op.MORE, Buffer.from('two ')), served(0x80 | Op.MORE, Buffer.from('three'))];
  const got = reader.push(Buffer.concat(bytes));
  assert.deepEqual(got.map(({ op, data }) => [op, data.toString()]), [[Op.PING, '?'], [Op.TEXT, 'one two three']]);
});

test('a close has a code and a reason, or neither', () => {
  const close = (/** @type {Buffer} */ data) => new FrameReader().push(served(0x80 | Op.CLOSE, data)).map(({ code, reason }) => [code, reason])[0];
  assert.deepEqual(close(closing(4001, 'bye')), [4001, 'bye']);
  assert.deepEqual(close(closing(1006)), [1005, '']);
});

test('what is no frame of a server is refused', () => {
  assert.throws(() => new FrameReader().push(frame(Op.TEXT, Buffer.from('masked'))), /no frame/);
  assert.throws(() => new FrameReader().push(Buffer.from('827fffffffffffffffff', 'hex')), /no frame/);
});
