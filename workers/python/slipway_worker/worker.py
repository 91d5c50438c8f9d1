"""The worker process: what comes in over the link and who takes it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import frames
from .exchange import Exchanges
from .frames import Frame
from .link import Link
from .log import Log

if TYPE_CHECKING:
    from .calls import Calls
    from .loader import Graph
    from .parts import Parts
    from .runner import Run


class Worker:
    """Takes frames in the event loop: loads graphs, starts, feeds and cancels runs, answers calls."""

    def __init__(self) -> None:
        self.link: Link
        self.log: Log
        self._graphs: dict[str, Graph] = {}
        self._runs: dict[int, Run] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: Calls | None = None
        self._cache: Any = None
        self._parts: Parts | None = None
        self._exchanges: Exchanges

    def attach(self, link: Link) -> None:
        """Use this link."""
        self.link, self.log, self._exchanges = link, Log(link), Exchanges(link)

    @property
    def closable(self) -> bool:
        """Say whether the application has anything open that it would close."""
        return self._parts is not None and self._parts.closable

    async def close(self) -> None:
        """Close what the application has open."""
        if self._parts is not None:
            await self._parts.close()

    def hear(self, loop: asyncio.AbstractEventLoop, received: list[Frame]) -> None:
        """Pass frames on to the event loop. Runs in the link's thread.

        Texts are embedded beside the event loop: a graph that waits for the store there without letting others run
        waits for their vectors.
        """
        for frame in received:
            if self._answers is not None and self._answers.embeds(frame.kind, frame.envelope):
                self._answers.embed(frame.stream, frame.envelope)
        others = [f for f in received if self._answers is None or not self._answers.embeds(f.kind, f.envelope)]
        if others:
            loop.call_soon_threadsafe(self.take, others)

    def take(self, received: list[Frame]) -> None:
        """Handle frames in their order. Runs in the event loop."""
        handlers = {
            frames.LOAD: self._load,
            frames.RUN: self._run,
            frames.CANCEL: self._cancel,
            frames.CREDIT: self._credit,
            frames.CALL: self._call,
            frames.ABORT: self._abort,
            frames.REQUEST: self._request,
            frames.RESPONSE: self._exchange,
            frames.BODY: self._exchange,
            frames.ROOM: self._exchange,
            frames.HANGUP: self._exchange,
        }
        for frame in received:
            if handler := handlers.get(frame.kind):
                handler(frame)

    def _load(self, frame: Frame) -> None:
        self._spawn(self._load_graphs(frame.envelope))

    async def _load_graphs(self, envelope: Mapping[str, Any]) -> None:
        if limit := envelope.get("delta_max_supersteps"):
            os.environ.setdefault("LANGGRAPH_DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT", str(limit))
        warnings: list[str] = []
        slots = int(envelope.get("slots") or 0)
        threads = concurrent.futures.ThreadPoolExecutor(max(_THREADS, 4 * slots), thread_name_prefix="slipway-node")
        asyncio.get_running_loop().set_default_executor(threads)
        specs = envelope.get("graphs") or {}
        try:
            from . import loader, parts, shims
            from .cache import Cache
            from .calls import Calls
        except ImportError as error:
            self._loaded_nothing(envelope, error)
            return
        warn = _Warnings(warnings, self.log)
        shims.install(self.link, self._exchanges)
        self._parts = parts.Parts(self.link, self._exchanges, self.log, warn)
        said = await self._parts.load(envelope.get("parts") or {})
        self._graphs, loaded = await loader.load_all(specs, warn)
        shims.connect(self._exchanges)
        self._answers = Calls(self.link, self._graphs, self._parts)
        self._cache = Cache(self.link, self._parts.serde, warn)
        warn.loaded = True
        self.link.send(frames.LOADED, 0, {"graphs": loaded, "parts": said, "warnings": warnings})

    def _loaded_nothing(self, envelope: Mapping[str, Any], error: ImportError) -> None:
        failed = {"ok": False, "error": {"error": type(error).__name__, "message": _missing(error), "trace": ""}}
        named = {kind: envelope.get(kind) or {} for kind in ("graphs", "parts")}
        said = {kind: {name: failed for name, part in given.items() if part} for kind, given in named.items()}
        self.link.send(frames.LOADED, 0, {**said, "warnings": []})

    def _run(self, frame: Frame) -> None:
        request = frame.envelope
        graph = self._graphs.get(request.get("graph_id", ""))
        if graph is None:
            error = {"error": "LookupError", "message": f'no graph "{request.get("graph_id")}" is loaded'}
            self.link.send(frames.DONE, frame.stream, {"status": "error", "error": error, "retriable": False})
            return
        from .runner import Run

        run = Run(self.link, frame.stream, request, graph, self._parts, self._cache)  # type: ignore[arg-type]
        self._runs[frame.stream] = run
        task = self._spawn(run.execute())
        task.add_done_callback(lambda _: self._run_ended(frame.stream))

    def _run_ended(self, stream: int) -> None:
        self._runs.pop(stream, None)
        self._exchanges.end_run(stream)

    def _cancel(self, frame: Frame) -> None:
        if run := self._runs.get(frame.stream):
            run.cancel(frame.envelope.get("action", "interrupt"))

    def _credit(self, frame: Frame) -> None:
        if run := self._runs.get(frame.stream):
            run.credit(int(frame.envelope.get("chunks") or 0))

    def _call(self, frame: Frame) -> None:
        if self._answers is None:
            said = {"error": "LookupError", "message": "no graphs are loaded yet", "code": "not_found"}
            self.link.send(frames.RETURN, frame.stream, {"ok": False, "error": said})
            return
        task = self._spawn(self._answers.answer(frame.stream, frame.envelope, frame.payload))
        self._calls[frame.stream] = task
        task.add_done_callback(lambda _: self._calls.pop(frame.stream, None))

    def _abort(self, frame: Frame) -> None:
        if task := self._calls.get(frame.stream):
            task.cancel()

    def _request(self, frame: Frame) -> None:
        exchange = self._exchanges.accept(frame)
        if self._parts is None or self._parts.app is None:
            exchange.respond({"pass": True})
        else:
            self._spawn(self._parts.app.serve(exchange))

    def _exchange(self, frame: Frame) -> None:
        self._exchanges.take(frame)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Warnings:
    """Collects warnings while graphs load; later ones go to the log, each once."""

    def __init__(self, collected: list[str], log: Log) -> None:
        self._collected = collected
        self._log = log
        self.loaded = False

    def __call__(self, message: str) -> None:
        if not self.loaded:
            self._collected.append(message)
        else:
            self._log.once(message)


def _missing(error: ImportError) -> str:
    return f"langgraph cannot be imported ({error}): add langgraph, 1.0 or later, to the project's dependencies"


_THREADS = 32
"""The least number of threads for nodes that are no coroutines."""
