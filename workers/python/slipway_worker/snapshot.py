"""Thread states as JSON (reference 3 and 14.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .saver import Put

_COORDINATES = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


def checkpoint_of(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the address of a checkpoint: exactly the four members clients expect, or None without a config."""
    if not config:
        return None
    conf = config.get("configurable") or {}
    return {k: conf.get(k, "" if k == "checkpoint_ns" else None) for k in _COORDINATES}


def thread_state(state: Any) -> dict[str, Any]:
    """Return a StateSnapshot of the library as a ThreadState."""
    tasks = [_task(task) for task in state.tasks]
    waiting = [i for task in tasks for i in task["interrupts"]]
    own = getattr(state, "interrupts", None)
    return {
        "values": state.values,
        "next": list(state.next),
        "tasks": tasks,
        "metadata": state.metadata or {},
        "created_at": state.created_at,
        "checkpoint": checkpoint_of(state.config),
        "parent_checkpoint": checkpoint_of(state.parent_config),
        "interrupts": waiting if own is None else [interrupt(i) for i in own],
    }


def ended(values: Any, put: Put) -> dict[str, Any]:
    """Return the ThreadState of a run that ended with nothing left to do, without asking the graph."""
    parent = put.parent_id and _address(put.thread_id, put.parent_id)
    return {
        "values": values,
        "next": [],
        "tasks": [],
        "metadata": put.metadata,
        "created_at": put.created_at,
        "checkpoint": _address(put.thread_id, put.checkpoint_id),
        "parent_checkpoint": parent or None,
        "interrupts": [],
    }


def interrupt(value: Any) -> Any:
    """Return an interrupt as {id, value, response_schema?}."""
    if isinstance(value, Mapping):
        return {k: v for k, v in value.items() if k != "response_schema" or v is not None}
    out = {"id": getattr(value, "id", None), "value": value.value}
    schema = getattr(value, "response_schema", None)
    return {**out, "response_schema": schema} if isinstance(schema, Mapping) else out


def interrupts(values: Sequence[Any] | None) -> list[Any]:
    """Return a list of interrupts as JSON."""
    return [interrupt(value) for value in values or ()]


def _task(task: Any) -> dict[str, Any]:
    state = task.state
    nested = state is not None and hasattr(state, "values") and hasattr(state, "tasks")
    addressed = isinstance(state, Mapping) and not nested
    error = task.error
    return {
        "id": task.id,
        "name": task.name,
        "path": list(task.path),
        "error": None if error is None else error if isinstance(error, str) else repr(error),
        "interrupts": interrupts(task.interrupts),
        "checkpoint": checkpoint_of(state) if addressed else checkpoint_of(state.config) if nested else None,
        "state": thread_state(state) if nested else None,
        "result": getattr(task, "result", None),
    }


def _address(thread_id: str, checkpoint_id: str) -> dict[str, Any]:
    return {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id, "checkpoint_map": None}
