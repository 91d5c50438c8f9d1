"""Runs per second of a trivial graph: bare in one process with InMemorySaver, and through a worker process.

    python bench/trivial.py [runs] [in flight] [rounds]

The worker's server is a minimal one that acknowledges storage without doing it, in a process of its own, so that the
figure is the worker's. Prints a table and one JSON line; medians of several rounds, alternating. The CPU time of the
process under test is printed beside the rate: on a busy machine it is the figure to trust.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from slipway_worker import frames  # noqa: E402


def bare(graph, total, parallel, stream):
    """Run the graph in this process, `parallel` at a time, the way the worker does or by ainvoke."""

    async def one(compiled, number):
        config = {"configurable": {"thread_id": f"t{number}"}}
        if not stream:
            await compiled.ainvoke({"x": 1}, config)
            return
        async for _ in compiled.astream({"x": 1}, config, stream_mode=["values"]):
            pass

    async def all_of_them():
        from langgraph.checkpoint.memory import InMemorySaver

        compiled = graph.copy(update={"checkpointer": InMemorySaver()})
        numbers = iter(range(total))

        async def lane():
            for number in numbers:
                await one(compiled, number)

        await asyncio.gather(*(lane() for _ in range(parallel)))

    return _with_loop(all_of_them)


def _with_loop(work):
    try:
        import uvloop as module
    except ImportError:
        module = asyncio
    loop = module.new_event_loop()
    try:
        started = time.perf_counter()
        loop.run_until_complete(work())
        return time.perf_counter() - started
    finally:
        loop.close()


class Acknowledging:
    """A server that keeps `parallel` runs in flight and answers every storage question with "nothing there"."""

    def __init__(self):
        self.sock, theirs = socket.socketpair()
        env = {**os.environ, "PYTHONPATH": str(ROOT), "SLIPWAY_WORKER_FD": str(theirs.fileno())}
        command = [sys.executable, "-m", "slipway_worker"]
        self.process = subprocess.Popen(command, cwd=ROOT / "bench", env=env, pass_fds=[theirs.fileno()])
        theirs.close()
        self.decoder, self.stream = frames.Decoder(), 0
        self.sock.sendall(frames.encode(frames.LOAD, 0, {"graphs": {"g": "./graph.py:graph"}}))
        while not any(f.kind == frames.LOADED for f in self._receive()):
            pass

    def measure(self, total, parallel):
        started, sent, ended = time.perf_counter(), 0, 0
        out = []
        while ended < total:
            while sent - ended < parallel and sent < total:
                out.append(self._run())
                sent += 1
            self.sock.sendall(b"".join(out))
            out = []
            for frame in self._receive():
                if frame.kind == frames.ASK:
                    out.append(frames.encode(frames.ANSWER, frame.stream, {"ok": True, "tuple": None}))
                elif frame.kind == frames.DONE:
                    assert frame.envelope["status"] == "success", frame
                    ended += 1
        return time.perf_counter() - started

    def _run(self):
        self.stream += 1
        request = {"run_id": str(uuid.uuid4()), "thread_id": str(uuid.uuid4()), "graph_id": "g", "input": {"x": 1}}
        request |= {"config": {"configurable": {}, "metadata": {}}, "stream_mode": [], "credit": 64, "attempt": 1}
        return frames.encode(frames.RUN, self.stream, request)

    def _receive(self):
        return list(self.decoder.feed(self.sock.recv(1 << 18)))

    def close(self):
        self.sock.close()
        self.process.wait()


def bare_process(pipe):
    """Answer (total, parallel, stream) with seconds, so that both sides have warm processes of their own."""
    from graph import graph

    while (asked := pipe.recv()) is not None:
        pipe.send(bare(graph, *asked))


def cpu(pid):
    """Return the CPU seconds a process has spent so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    given = [int(a) for a in sys.argv[1:]]
    total, parallel, rounds = [*given, *(1000, 16, 5)[len(given) :]]
    mine, theirs = multiprocessing.Pipe()
    other = multiprocessing.get_context("spawn").Process(target=bare_process, args=(theirs,))
    other.start()
    server = Acknowledging()

    def ask(*what):
        mine.send(what)
        return mine.recv()

    kinds = {
        "bare ainvoke": (other.pid, lambda n: ask(n, parallel, False)),
        "bare astream": (other.pid, lambda n: ask(n, parallel, True)),
        "worker": (server.process.pid, lambda n: server.measure(n, parallel)),
    }
    rates = {name: [] for name in kinds}
    spent = {name: [] for name in kinds}
    for _, work in kinds.values():
        work(100)
    for _ in range(rounds):
        for name, (pid, work) in kinds.items():
            before = cpu(pid)
            rates[name].append(total / work(total))
            spent[name].append((cpu(pid) - before) * 1000 / total)
    medians = {name: round(statistics.median(found), 1) for name, found in rates.items()}
    costs = {name: round(statistics.median(found), 3) for name, found in spent.items()}
    for name, rate in medians.items():
        share, cost = rate / medians["bare ainvoke"], costs[name]
        print(f"{name:14} {rate:8.1f} runs/s   {share:.2f} of bare ainvoke   {cost:.3f} ms CPU a run")
    print(json.dumps({"runs": total, "in_flight": parallel, "rounds": rounds, "rate": medians, "cpu_ms": costs}))
    server.close()
    mine.send(None)
    other.join()


if __name__ == "__main__":
    main()
