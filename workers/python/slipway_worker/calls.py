"""Questions about a graph: states, histories, updates (CALL and RETURN)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.errors import EmptyInputError, InvalidUpdateError
from langgraph.pregel import Pregel
from langgraph.types import StateUpdate

from . import frames, jsonable, snapshot
from .link import Link, LinkError
from .loader import READ, UPDATE, Graph, Operation
from .runner import command_of, describe
from .saver import Saver
from .store import Store


class Refused(Exception):
    """A call cannot be answered; code is one of the protocol's."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Calls:
    """Answers calls about the loaded graphs."""

    def __init__(self, link: Link, graphs: Mapping[str, Graph]) -> None:
        self._link = link
        self._graphs = graphs

    async def answer(self, stream: int, call: Mapping[str, Any]) -> None:
        """Answer one call with RETURN; never raises but when the call is aborted."""
        try:
            result = jsonable.dumps(await self._do(call))
            self._link.send(frames.RETURN, stream, {"ok": True}, result)
        except Exception as error:
            said = {**describe(error), "code": _code(error)}
            self._link.send(frames.RETURN, stream, {"ok": False, "error": said})

    async def _do(self, call: Mapping[str, Any]) -> Any:
        verbs = {"state.get": (_get, READ), "state.history": (_history, READ), "state.update": (_update, UPDATE)}
        if call.get("verb") not in verbs:
            raise Refused(f'the worker does not know the call "{call.get("verb")}"', "invalid")
        verb, access = verbs[call["verb"]]
        graph_id = call.get("graph_id")
        if graph_id not in self._graphs:
            raise Refused(f'no graph "{graph_id}" is loaded', "not_found")
        store = Store(self._link)
        config = dict(call.get("config") or {})
        async with self._graphs[graph_id].open(Operation(access, config, store)) as source:
            graph = source.copy(update={"checkpointer": Saver(self._link), "store": store})
            return await verb(graph, config, call)


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


def _code(error: Exception) -> str:
    if isinstance(error, Refused | LinkError):
        return error.code
    refusals = (InvalidUpdateError, EmptyInputError, ValueError, TypeError, KeyError)
    return "invalid" if isinstance(error, refusals) else "internal"
