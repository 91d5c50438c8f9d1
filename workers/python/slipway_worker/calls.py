"""Questions to the worker: about graphs, users, texts and secrets (CALL and RETURN)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from langgraph.errors import EmptyInputError, InvalidUpdateError
from langgraph.pregel import Pregel
from langgraph.types import StateUpdate

from . import custom, describe, frames, jsonable, snapshot
from .link import Link, LinkError
from .loader import DESCRIBE, READ, UPDATE, Graph, Operation
from .parts import Parts
from .refusals import HTTPRefusal, Refused
from .runner import command_of
from .runner import describe as describe_error
from .users import adopt


class Calls:
    """Answers calls about the loaded graphs and parts."""

    def __init__(self, link: Link, graphs: Mapping[str, Graph], parts: Parts) -> None:
        self._link = link
        self._graphs = graphs
        self._parts = parts

    async def answer(self, stream: int, call: Mapping[str, Any], body: bytes = b"") -> None:
        """Answer one call with RETURN; never raises but when the call is aborted. body is the call's payload."""
        try:
            result = jsonable.dumps(await self._do(call, body))
            self._link.send(frames.RETURN, stream, {"ok": True}, result)
        except BaseException as error:  # whatever it is: somebody waits for an answer
            self._link.send(frames.RETURN, stream, {"ok": False, "error": _told(error)})
            if _aborted():
                raise

    def embeds(self, kind: int, call: Mapping[str, Any]) -> bool:
        """Say whether a frame asks the embedding function."""
        return kind == frames.CALL and call.get("verb") == "embed.texts" and self._parts.embedder is not None

    def embed(self, stream: int, call: Mapping[str, Any]) -> None:
        """Answer a call for which embeds holds; from any thread."""
        if self._parts.embedder is not None:
            self._parts.embedder.start(self.answer(stream, call))

    async def _do(self, call: Mapping[str, Any], body: bytes) -> Any:
        verb, parts = str(call.get("verb")), self._parts
        if verb in _STATE or verb in describe.VERBS:
            return await self._of_graph(verb, call)
        if verb == "auth.authenticate":
            return await _present(parts.auth, "auth").authenticate(call, body)
        if verb == "auth.authorize":
            return await _present(parts.auth, "auth").authorize(call)
        if verb == "embed.texts":
            return await _present(parts.embedder, "store.index.embed").texts(call.get("texts") or ())
        if verb in ("crypt.encrypt", "crypt.decrypt"):
            return await _present(parts.encryption, "encryption").crypt(call)
        if verb in custom.CHECKPOINT_VERBS:
            return await custom.checkpoints(_present(parts.checkpointer, "checkpointer.path"), call)
        if verb == "store.batch":
            return await custom.items(_present(parts.store, "store.path"), call)
        raise Refused(f'the worker does not know the call "{verb}"', "invalid")

    async def _of_graph(self, verb: str, call: Mapping[str, Any]) -> Any:
        do, access = _STATE.get(verb, (None, DESCRIBE))
        graph_id = call.get("graph_id")
        if graph_id not in self._graphs:
            raise Refused(f'no graph "{graph_id}" is loaded', "not_found")
        store, config, source = self._parts.items(), adopt(call.get("config")), self._graphs[graph_id]
        async with source.open(Operation(access, config, store)) as graph:
            if do is None:
                return await describe.of(source, graph, config, call)
            saver = self._parts.saver(context=call.get("encryption_context"))
            return await do(graph.copy(update={"checkpointer": saver, "store": store}), config, call)


def _present(part: Any, name: str) -> Any:
    if part is None:
        raise Refused(f'the configuration names no "{name}" that this worker has loaded', "invalid")
    return part


async def _get(graph: Pregel, config: dict[str, Any], call: Mapping[str, Any]) -> Any:
    state = await graph.aget_state(config, subgraphs=bool(call.get("subgraphs")))
    wanted = (config.get("configurable") or {}).get("checkpoint_id")
    if wanted and state.created_at is None:
        raise Refused(f"the thread has no checkpoint {wanted}", "not_found")
    return snapshot.thread_state(state)


async def _history(graph: Pregel, config: dict[str, Any], call: Mapping[str, Any]) -> Any:
    before = call.get("before")
    thread = (config.get("configurable") or {}).get("thread_id")
    at = {"configurable": {"thread_id": thread, "checkpoint_id": before}} if before else None
    found = graph.aget_state_history(config, filter=call.get("filter"), before=at, limit=call.get("limit"))
    return [snapshot.thread_state(state) async for state in found]


async def _update(graph: Pregel, config: dict[str, Any], call: Mapping[str, Any]) -> Any:
    steps = [[_state_update(update) for update in step] for step in call["supersteps"]]
    new = await graph.abulk_update_state(config, steps)
    thread = (config.get("configurable") or {}).get("thread_id")
    state = await graph.aget_state({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
    return {"config": _plain(new), "snapshot": snapshot.thread_state(state)}


def _state_update(update: Mapping[str, Any]) -> StateUpdate:
    values = update.get("values")
    if update.get("command"):
        values = command_of(update["command"])
    return StateUpdate(values, update.get("as_node"))


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    conf = {k: v for k, v in (config.get("configurable") or {}).items() if not k.startswith("__")}
    return {"configurable": conf}


def _aborted() -> bool:
    """Say whether it was not the user's code that raised CancelledError."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _told(error: BaseException) -> dict[str, Any]:
    if isinstance(error, HTTPRefusal):
        refused = {"code": "http", "status": error.status, "headers": error.headers}
        return {"error": error.error, "message": error.detail, **refused}
    return {**describe_error(error), "code": _code(error)}


def _code(error: BaseException) -> str:
    if isinstance(error, Refused | LinkError):
        return error.code
    refusals = (InvalidUpdateError, EmptyInputError, ValueError, TypeError, KeyError)
    return "invalid" if isinstance(error, refusals) else "internal"


_STATE = {"state.get": (_get, READ), "state.history": (_history, READ), "state.update": (_update, UPDATE)}
