"""Executing one run: from RUN to DONE."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from importlib import metadata as packages
from typing import Any

from langgraph.pregel import Pregel
from langgraph.types import Command, Send

from . import frames, jsonable, snapshot
from .asgi import RUN
from .link import Link, LinkError
from .loader import CREATE_RUN, Graph, Operation
from .modes import Modes, public
from .parts import Parts
from .saver import Saver
from .stopper import Stopper
from .users import adopt

try:
    from langgraph._internal._constants import CONFIG_KEY_STRICT_RESUME as STRICT_RESUME
except ImportError:  # a library that does not know strict resume: the worker checks by itself
    STRICT_RESUME = ""

_INTERRUPT = "__interrupt__"


class UnknownInterruptError(Exception):
    """A strict resume answers an interrupt that is not waiting."""


class Run:
    """One run of a graph. It is created in the event loop and lives there."""

    def __init__(
        self, link: Link, stream: int, request: Mapping[str, Any], graph: Graph, parts: Parts, cache: Any = None
    ) -> None:
        """stream is the run's number on the link, request the RUN envelope."""
        self._link = link
        self._stream = stream
        self._request = request
        self._graph = graph
        self._cache = cache
        self._credit = int(request.get("credit") or 0)
        self._more = asyncio.Event()
        self._modes = Modes(request.get("stream_mode") or (), bool(request.get("subgraphs")))
        self._values: Any = None
        self._has_values = False
        self._interrupts: list[Any] = []
        self._stopped = False
        self._cancel: str | None = None
        self._stopper = Stopper()
        self._task: asyncio.Task[Any] | None = None
        self._work: asyncio.Task[None] | None = None
        temporary = bool(request.get("temporary"))
        fresh = request["thread_id"] if request.get("fresh") else None
        sync = request.get("durability") == "sync"
        context = request.get("encryption_context")
        self._saver = None if temporary else parts.saver(run=stream, wait=sync, fresh=fresh, context=context)
        self._store = parts.items(run=stream)

    def credit(self, chunks: int) -> None:
        """Allow so many more CHUNKs."""
        self._credit += chunks
        self._more.set()

    def cancel(self, action: str) -> None:
        """Raise CancelledError into the graph. A second cancel changes nothing but the action."""
        first, self._cancel = self._cancel is None, action
        self._stopper.stop()
        task = self._work or self._task  # a factory that is still at work is cancelled itself
        if first and task is not None:
            task.cancel()

    async def execute(self) -> None:
        """Run the graph to its end and send DONE; never raises."""
        self._task = asyncio.current_task()
        RUN.set(self._stream)
        config = run_config(self._request)
        config["callbacks"] = [self._stopper]
        operation = Operation(CREATE_RUN, config, self._store, self._request.get("context"))
        try:
            async with self._graph.open(operation) as source:
                graph = self._equip(source)
                self._work = asyncio.create_task(self._consume(graph, config))
                if self._cancel is not None:
                    self._work.cancel()
                failure = await _outcome(self._work)
                payload = await self._snapshot(graph, failure)
        except BaseException as error:  # whatever it is: a run without DONE would never end
            failure, payload = error, b""
        self._done(failure, payload)

    def _equip(self, source: Pregel) -> Pregel:
        update: dict[str, Any] = {"checkpointer": self._saver, "store": self._store}
        if self._cache is not None:
            update["cache"] = source.cache or self._cache.of(self._graph.graph_id)
        return source.copy(update=update)

    # Streaming

    async def _consume(self, graph: Pregel, config: dict[str, Any]) -> None:
        if self._request.get("strict_resume") and not STRICT_RESUME:
            await check_resume(graph, config, self._request)
        wanted = bool(self._modes.wanted)
        async for ns, mode, data in self._items(graph, config):
            if not ns:
                self._observe(mode, data)
            if not wanted:
                continue
            for event, shaped in self._modes.frames(ns, mode, data):
                await self._chunk(event, shaped)

    def _items(self, graph: Pregel, config: dict[str, Any]) -> AsyncIterator[tuple[tuple[str, ...], str, Any]]:
        request, modes = self._request, self._modes
        arguments: dict[str, Any] = {
            "stream_mode": modes.library,
            "subgraphs": modes.subgraphs,
            "interrupt_before": request.get("interrupt_before"),
            "interrupt_after": request.get("interrupt_after"),
        }
        if (context := _context(graph, request.get("context"))) is not None:
            arguments["context"] = context
        if request.get("durability") and self._saver is not None:
            arguments["durability"] = request["durability"]
        if modes.events:
            return self._from_events(graph.astream_events(_input(request), config, version="v2", **arguments))
        return _triples(graph.astream(_input(request), config, **arguments), modes.subgraphs)

    async def _from_events(self, events: AsyncIterator[Any]) -> AsyncIterator[tuple[tuple[str, ...], str, Any]]:
        async for event in events:
            if event["event"] == "on_chain_stream" and not event.get("parent_ids"):
                yield _triple(event["data"]["chunk"], self._modes.subgraphs)
            elif "langsmith:hidden" not in (event.get("tags") or ()):
                await self._chunk("events", {**event, "metadata": public(event.get("metadata") or {})})

    def _observe(self, mode: str, data: Any) -> None:
        """Remember what the run's end depends on."""
        marked = data.get(_INTERRUPT) if isinstance(data, Mapping) else None
        if mode == "values":
            self._values, self._has_values = data, True
        if marked is not None:
            self._stopped = True
            if mode == "updates":
                self._interrupts += marked

    async def _chunk(self, event: str, data: Any) -> None:
        while self._credit <= 0:
            self._more.clear()
            await self._more.wait()
        self._credit -= 1
        self._link.send(frames.CHUNK, self._stream, {"event": event}, jsonable.dumps(data))

    # Ending

    async def _snapshot(self, graph: Pregel, failure: BaseException | None) -> bytes:
        if self._cancel == "fenced" or (failure is not None and _retriable(failure)):
            return b""
        if self._saver is None:
            return jsonable.dumps(self._temporary())
        ours = isinstance(self._saver, Saver)
        put = self._saver.last.get("") if ours else None
        nothing = put is None and failure is None and self._cancel is None and not self._stopped
        # A retry may find that the attempt before it has done everything but say so.
        if ours and nothing and not self._request.get("resume"):
            return b""
        if put is not None and failure is None and self._ended():
            return jsonable.dumps(snapshot.ended(self._values, put))
        state = await graph.aget_state(_thread_config(self._request))
        return b"" if state.created_at is None else jsonable.dumps(snapshot.thread_state(state))

    def _ended(self) -> bool:
        """Say whether the last values and the last checkpoint are all there is to know."""
        return self._has_values and not self._stopped and self._cancel is None

    def _temporary(self) -> dict[str, Any]:
        values = self._values
        if isinstance(values, Mapping):
            values = {k: v for k, v in values.items() if k != _INTERRUPT}
        return {"values": values, "interrupts": snapshot.interrupts(self._interrupts)}

    def _done(self, failure: BaseException | None, payload: bytes) -> None:
        envelope: dict[str, Any] = {"status": "success", "retriable": False}
        if failure is not None and (self._cancel is not None or isinstance(failure, asyncio.CancelledError)):
            envelope["status"] = "cancelled"
        elif failure is not None:
            envelope["status"], envelope["error"] = "error", describe(failure)
            envelope["retriable"] = _retriable(failure)
        try:
            self._link.send(frames.DONE, self._stream, envelope, payload)
        except frames.FrameError as error:
            envelope.update(status="error", error=describe(error), retriable=False)
            self._link.send(frames.DONE, self._stream, envelope)


async def check_resume(graph: Pregel, config: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    """Refuse a resume whose interrupts are not waiting, for libraries without strict resume."""
    resume = (request.get("command") or {}).get("resume")
    if resume is None:
        return
    state = await graph.aget_state(dict(config), subgraphs=True)
    waiting = {i.id for task in state.tasks for i in task.interrupts}
    named = set(resume) if isinstance(resume, dict) and all(_interrupt_id(k) for k in resume) else None
    if named is None and len(waiting) > 1:
        raise UnknownInterruptError("several interrupts are waiting: answer each by its id")
    if named is not None and (unknown := sorted(named - waiting) or ([] if named else ["(none)"])):
        raise UnknownInterruptError(f"no interrupt with the id {unknown[0]} is waiting")


def run_config(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config the graph is called with (reference 4.2)."""
    config = adopt(request.get("config"))
    conf = dict(config.get("configurable") or {})
    named = {k: request[k] for k in ("run_id", "thread_id", "graph_id", "assistant_id") if request.get(k) is not None}
    conf.update(named)
    conf.setdefault("checkpoint_ns", "")
    if request.get("strict_resume") and STRICT_RESUME:
        conf[STRICT_RESUME] = True
    added = {
        "run_attempt": request.get("attempt", 1),
        "langgraph_version": LANGGRAPH_VERSION,
        "langgraph_plan": "developer",
        "langgraph_host": "self-hosted",
        **({"langgraph_api_url": url} if (url := os.environ.get("LANGGRAPH_API_URL")) else {}),
        **named,
    }
    config["configurable"] = conf
    config["metadata"] = {**(config.get("metadata") or {}), **added}
    if run_id := _uuid(request.get("run_id")):
        config["run_id"] = run_id
    if config.get("recursion_limit") is None:
        config.pop("recursion_limit", None)
    return config


def command_of(command: Mapping[str, Any]) -> Command:
    """Return the library's Command of a client's {update, resume, goto}."""
    given: dict[str, Any] = {}
    if (update := command.get("update")) is not None:
        given["update"] = [tuple(pair) for pair in update] if isinstance(update, list) else update
    if command.get("resume") is not None:
        given["resume"] = command["resume"]
    if (goto := command.get("goto")) is not None:
        given["goto"] = [_target(g) for g in goto] if isinstance(goto, list) else _target(goto)
    return Command(**given)


def describe(error: BaseException) -> dict[str, str]:
    """Return an exception as {error, message}. Never raises; a message is cut where nobody reads on."""
    name = error.error if isinstance(error, LinkError) else type(error).__name__
    message = jsonable.text(error)
    cut = f"... ({len(message)} characters)" if len(message) > _LONGEST_MESSAGE else ""
    return {"error": name, "message": message[:_LONGEST_MESSAGE] + cut}


def _input(request: Mapping[str, Any]) -> Any:
    if request.get("resume"):
        return None
    if request.get("command"):
        return command_of(request["command"])
    return request.get("input")


def _context(graph: Pregel, context: Any) -> Any:
    """Return the context to run with: an empty one only if the graph's schema has a default for every member."""
    schema = getattr(graph, "context_schema", None)
    if context == {} and schema is not None:
        try:
            schema()
        except Exception:
            return None
    return context


def _target(goto: Any) -> Any:
    return Send(goto["node"], goto.get("input")) if isinstance(goto, Mapping) else goto


def _thread_config(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"configurable": {"thread_id": request["thread_id"], "checkpoint_ns": ""}}


def _triple(item: Any, subgraphs: bool) -> tuple[tuple[str, ...], str, Any]:
    return item if subgraphs else ((), *item)


async def _triples(items: AsyncIterator[Any], subgraphs: bool) -> AsyncIterator[tuple[tuple[str, ...], str, Any]]:
    async for item in items:
        yield _triple(item, subgraphs)


async def _outcome(work: asyncio.Task[None]) -> BaseException | None:
    await asyncio.wait([work])
    return asyncio.CancelledError() if work.cancelled() else work.exception()


def _retriable(failure: BaseException) -> bool:
    return isinstance(failure, LinkError) and failure.code not in ("invalid", "not_found")


def _interrupt_id(text: str) -> bool:
    return len(text) == 32 and all(c in "0123456789abcdef" for c in text)


def _uuid(text: Any) -> uuid.UUID | None:
    try:
        return uuid.UUID(str(text)) if text else None
    except ValueError:
        return None


def _version() -> str | None:
    try:
        return packages.version("langgraph")
    except packages.PackageNotFoundError:
        return None


LANGGRAPH_VERSION = _version()
_LONGEST_MESSAGE = 64 << 10
"""Of an exception: it is kept with the run and its thread, and told with each of them."""
