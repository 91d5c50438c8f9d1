"""Stream modes: which of the library's a client's modes need, and how their data looks on the wire (reference 10.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import jsonable, snapshot
from .messages import Messages, hidden

Event = tuple[str, Any]

_LIBRARY: Mapping[str, tuple[str, ...]] = {
    "values": (),
    "updates": (),
    "custom": ("custom",),
    "debug": ("debug",),
    "tasks": ("tasks",),
    "checkpoints": ("checkpoints",),
    "messages": ("messages",),
    "messages-tuple": ("messages",),
    "tools": ("tools",),
    "lifecycle": ("tasks",),
}


class Modes:
    """The stream of one run: the client's modes in front, the library's behind."""

    def __init__(self, wanted: Iterable[str], subgraphs: bool) -> None:
        """wanted are modes as clients name them; unknown ones are ignored."""
        self.wanted = frozenset(wanted)
        self.library = ["values", "updates"]  # both are needed to know how the run ends
        for mode in sorted(self.wanted):
            self.library += [m for m in _LIBRARY.get(mode, ()) if m not in self.library]
        self.subgraphs = subgraphs or "lifecycle" in self.wanted
        self.events = "events" in self.wanted
        self._nested = subgraphs
        self._messages: dict[tuple[str, ...], Messages] = {}
        self._tools: dict[str, str] = {}
        self._lifecycle = Lifecycle()

    def frames(self, ns: tuple[str, ...], mode: str, data: Any) -> Iterator[Event]:
        """Yield (event name, data) of every frame that one item of the library's stream causes."""
        if "lifecycle" in self.wanted:
            yield from self._lifecycle.item(ns, mode, data)
        if ns and not self._nested:
            return
        suffix = "".join(f"|{part}" for part in ns)
        for event, shaped in self._shape(ns, mode, data):
            yield event + suffix, shaped

    def _shape(self, ns: tuple[str, ...], mode: str, data: Any) -> Iterator[Event]:
        if mode == "messages":
            yield from self._chunk(ns, *data)
        elif mode == "tools":
            yield "tools", self._tool(data)
        elif mode in self.wanted:
            yield mode, _shape(mode, data)
        if mode == "values" and "messages" in self.wanted:
            yield from self._of(ns).values(data)

    def _chunk(self, ns: tuple[str, ...], message: Any, metadata: Mapping[str, Any]) -> Iterator[Event]:
        if hidden(metadata):
            return
        shown = public(metadata)
        if "messages" in self.wanted:
            yield from self._of(ns).chunk(message, shown)
        if "messages-tuple" in self.wanted:
            yield "messages", [message, shown]

    def _of(self, ns: tuple[str, ...]) -> Messages:
        return self._messages.setdefault(ns, Messages())

    def _tool(self, data: Mapping[str, Any]) -> dict[str, Any]:
        kind, number = data.get("event", ""), data.get("tool_call_id")
        if kind == "tool-started":
            self._tools[str(number)] = data.get("tool_name", "")
        named, source, target = _TOOL.get(kind, ("on_tool_event", "delta", "data"))
        out = {"event": named, "toolCallId": number, "name": self._tools.get(str(number), "")}
        out[target] = data.get(source)
        if named in ("on_tool_end", "on_tool_error"):
            self._tools.pop(str(number), None)
        return out


_TOOL = {
    "tool-started": ("on_tool_start", "input", "input"),
    "tool-output-delta": ("on_tool_event", "delta", "data"),
    "tool-finished": ("on_tool_end", "output", "output"),
    "tool-error": ("on_tool_error", "message", "error"),
}


class Lifecycle:
    """Tells when subgraphs start and end, from the tasks they run in."""

    def __init__(self) -> None:
        self._started: set[tuple[str, ...]] = set()

    def item(self, ns: tuple[str, ...], mode: str, data: Any) -> Iterator[Event]:
        """Take one item of the stream and yield lifecycle frames."""
        for depth in range(1, len(ns) + 1):
            if ns[:depth] not in self._started:
                self._started.add(ns[:depth])
                yield _lifecycle(ns[:depth], "started")
        if mode == "tasks" and isinstance(data, Mapping) and "triggers" not in data:
            yield from self._end(ns, data)

    def _end(self, ns: tuple[str, ...], task: Mapping[str, Any]) -> Iterator[Event]:
        child = (*ns, f"{task.get('name')}:{task.get('id')}")
        if child not in self._started:
            return
        self._started.discard(child)
        if (error := task.get("error")) is not None:
            yield _lifecycle(child, "failed", error={"error": _error_type(error), "message": jsonable.text(error)})
        else:
            yield _lifecycle(child, "interrupted" if task.get("interrupts") else "completed")


def public(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata or configurable without what clients must not see: internals and the caller's credentials."""
    return {k: v for k, v in members.items() if not k.startswith(("__", "langgraph_auth_"))}


def _lifecycle(ns: tuple[str, ...], event: str, **more: Any) -> Event:
    return "lifecycle|" + "|".join(ns), {"event": event, "namespace": list(ns), **more}


def _error_type(error: Any) -> str:
    return type(error).__name__ if isinstance(error, BaseException) else "Error"


def _shape(mode: str, data: Any) -> Any:
    if mode == "debug":
        shape = {"checkpoint": _debug_checkpoint, "task": _task, "task_result": _task}.get(data.get("type"))
        return {**data, "payload": shape(data["payload"])} if shape else data
    if mode == "checkpoints":
        return _checkpoint(data)
    if mode == "tasks":
        return _task(data)
    return data


def _checkpoint(data: Mapping[str, Any]) -> dict[str, Any]:
    out = {**data, "tasks": [_nested(task) for task in data.get("tasks") or ()]}
    for key in ("config", "parent_config"):
        if key in data:
            out[key] = _public(data[key])
    return out


def _debug_checkpoint(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_checkpoint(data),
        "checkpoint": snapshot.checkpoint_of(data.get("config")),
        "parent_checkpoint": snapshot.checkpoint_of(data.get("parent_config")),
    }


def _nested(task: Mapping[str, Any]) -> dict[str, Any]:
    out = _task(task)
    state = out.pop("state", None)
    if isinstance(state, Mapping):
        out["checkpoint"] = snapshot.checkpoint_of(state)
    elif state is not None:
        out["state"] = snapshot.thread_state(state)
    return out


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(task)
    if isinstance(found := task.get("interrupts", ()), Sequence):
        out["interrupts"] = snapshot.interrupts(found)
    if "error" in out and out["error"] is None:
        del out["error"]
    if isinstance(out.get("metadata"), Mapping):
        out["metadata"] = public(out["metadata"])
    return out


def _public(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if config is None:
        return None
    return {**config, "configurable": public(config.get("configurable") or {})}
