"""The published saver conformance suite as a worker of a real agent server: it says hello, runs the suite over its link
and prints one line with what became of it."""

from __future__ import annotations

import asyncio
import os
import queue
import socket

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from slipway_worker import frames
from slipway_worker.link import Link
from slipway_worker.saver import Saver


def main() -> None:
    heard: queue.Queue[frames.Frame] = queue.Queue()
    sock = socket.socket(fileno=int(os.environ["SLIPWAY_WORKER_FD"]))
    link = Link(sock, lambda received: [heard.put(f) for f in received])
    link.start()
    link.send(frames.HELLO, 0, {"protocol": frames.PROTOCOL, "language": "python", "pid": os.getpid(), "versions": {}})
    link.flush()
    assert heard.get().kind == frames.LOAD
    link.send(frames.LOADED, 0, {"graphs": {}, "warnings": []})
    link.flush()

    @checkpointer_test(name="slipway")
    async def slipway_saver():
        yield Saver(link)

    results = asyncio.run(validate(slipway_saver)).results
    missed = {name: result for name, result in results.items() if result.passed is not True}
    print(f"conformance: {len(results) - len(missed)} of {len(Capability)} capabilities; missed {missed}", flush=True)


if __name__ == "__main__":
    main()
