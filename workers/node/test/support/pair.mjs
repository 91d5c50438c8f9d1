import { Duplex } from 'node:stream';

/** Two ends of one connection, in memory. @returns {[Duplex, Duplex]} */
export function duplexPair() {
  /** @type {any[]} */
  const ends = [];
  for (const i of [0, 1]) ends.push(end(() => ends[1 - i]));
  return /** @type {[Duplex, Duplex]} */ (ends);
}

/** @param {() => any} other */
function end(other) {
  return new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      other().push(chunk);
      done();
    },
    final(done) {
      other().push(null);
      done();
    },
  });
}
