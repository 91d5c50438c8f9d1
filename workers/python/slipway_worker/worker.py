"""The worker process: what comes in over the link and who takes it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import frames
from .frames import Frame
from .link import Link
from .log import Log

if TYPE_CHECKING:
    from .calls import Calls
    from .loader import Graph
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

    def attach(self, link: Link) -> None:
        """Use this link."""
        self.link, self.log = link, Log(link)

    def take(self, received: list[Frame]) -> None:
        """Handle frames in their order. Runs in the event loop."""
        handlers = {
            frames.LOAD: self._load,
            frames.RUN: self._run,
            frames.CANCEL: self._cancel,
            frames.CREDIT: self._credit,
            frames.CALL: self._call,
            frames.ABORT: self._abort,
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
        specs = envelope.get("graphs") or {}
        try:
            from . import loader
            from .calls import Calls
        except ImportError as error:
            said = {"error": type(error).__name__, "message": _missing(error), "trace": ""}
            loaded = {graph_id: {"ok": False, "error": said} for graph_id in specs}
            self.link.send(frames.LOADED, 0, {"graphs": loaded, "warnings": warnings})
            return
        warn = _Warnings(warnings, self.log)
        self._graphs, loaded = await loader.load_all(specs, warn)
        self._answers = Calls(self.link, self._graphs)
        self._cache = _memory_cache()
        warn.loaded = True
        self.link.send(frames.LOADED, 0, {"graphs": loaded, "warnings": warnings})

    def _run(self, frame: Frame) -> None:
        request = frame.envelope
        graph = self._graphs.get(request.get("graph_id", ""))
        if graph is None:
            error = {"error": "LookupError", "message": f'no graph "{request.get("graph_id")}" is loaded'}
            self.link.send(frames.DONE, frame.stream, {"status": "error", "error": error, "retriable": False})
            return
        from .runner import Run

        run = Run(self.link, frame.stream, request, graph, self._cache)
        self._runs[frame.stream] = run
        task = self._spawn(run.execute())
        task.add_done_callback(lambda _: self._runs.pop(frame.stream, None))

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
        task = self._spawn(self._answers.answer(frame.stream, frame.envelope))
        self._calls[frame.stream] = task
        task.add_done_callback(lambda _: self._calls.pop(frame.stream, None))

    def _abort(self, frame: Frame) -> None:
        if task := self._calls.get(frame.stream):
            task.cancel()

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


def _memory_cache() -> Any:
    try:
        from langgraph.cache.memory import InMemoryCache
    except ImportError:
        return None
    return InMemoryCache()
