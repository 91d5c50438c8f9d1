"""Checkpointers and stores of the application: opened once per worker (reference 13)."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from .imports import LoadError, kind, named
from .refusals import Refused

REQUIRED = ("aput", "aput_writes", "aget_tuple", "alist", "adelete_thread")
OPTIONAL = ("adelete_for_runs", "acopy_thread", "aprune", "aget_delta_channel_history")


async def opened(spec: str, stack: contextlib.AsyncExitStack) -> Any:
    """Return what spec names: called if it is a function, entered if it is a context manager."""
    value = named(spec)
    if callable(value) and not isinstance(value, BaseCheckpointSaver | BaseStore):
        value = value()
    if inspect.isawaitable(value):
        value = await value
    if isinstance(value, BaseCheckpointSaver | BaseStore):
        return value
    if hasattr(value, "__aenter__"):
        return await stack.enter_async_context(value)
    return stack.enter_context(value) if hasattr(value, "__enter__") else value


def checked_saver(spec: str, saver: Any) -> BaseCheckpointSaver[Any]:
    """Return a checkpointer that has all required methods. Raises LoadError for anything else."""
    if not isinstance(saver, BaseCheckpointSaver):
        raise LoadError(f"{spec} gives {kind(saver)}; a BaseCheckpointSaver is needed")
    missing = [name for name in REQUIRED if not has(saver, name)]
    if missing:
        raise LoadError(f"the checkpointer {type(saver).__name__} of {spec} lacks {', '.join(missing)}")
    return saver


def checked_store(spec: str, store: Any) -> BaseStore:
    """Return a store. Raises LoadError for anything else."""
    if not isinstance(store, BaseStore):
        raise LoadError(f"{spec} gives {kind(store)}; a BaseStore is needed")
    return store


def has(saver: Any, name: str) -> bool:
    """Say whether a checkpointer has a method of its own."""
    return getattr(type(saver), name, None) is not getattr(BaseCheckpointSaver, name, None)


async def checkpoints(saver: BaseCheckpointSaver[Any], call: Mapping[str, Any]) -> Any:
    """Do an operation on whole threads with the application's checkpointer."""
    verb = call["verb"]
    if verb == "checkpoint.delete_thread":
        return await saver.adelete_thread(call["thread_id"])
    if verb == "checkpoint.copy_thread":
        copy = saver.acopy_thread if has(saver, "acopy_thread") else lambda a, b: _copied(saver, a, b)
        return await copy(call["source"], call["target"])
    method = verb.replace("checkpoint.", "a")
    if not has(saver, method):
        raise Refused(f"the checkpointer {type(saver).__name__} has no {method}", "invalid")
    if verb == "checkpoint.prune":
        return await saver.aprune(call["thread_ids"], strategy=call.get("strategy") or "keep_latest")
    return await saver.adelete_for_runs(call["run_ids"])


CHECKPOINT_VERBS = frozenset(
    f"checkpoint.{name}" for name in ("delete_thread", "delete_for_runs", "copy_thread", "prune")
)


async def _copied(saver: BaseCheckpointSaver[Any], source: str, target: str) -> None:
    found = [item async for item in saver.alist({"configurable": {"thread_id": source}})]
    for item in reversed(found):
        at = {"thread_id": target, "checkpoint_ns": item.config["configurable"].get("checkpoint_ns", "")}
        parent = ((item.parent_config or {}).get("configurable") or {}).get("checkpoint_id")
        config: Any = {"configurable": {**at, **({"checkpoint_id": parent} if parent else {})}}
        stored = await saver.aput(config, item.checkpoint, item.metadata, item.checkpoint["channel_versions"])
        by_task: dict[str, list[tuple[str, Any]]] = {}
        for task, channel, value in item.pending_writes or ():
            by_task.setdefault(task, []).append((channel, value))
        for task, writes in by_task.items():
            await saver.aput_writes(stored, writes, task)


async def items(store: BaseStore, call: Mapping[str, Any]) -> Any:
    """Do a batch of the protocol with the application's store."""
    operations = [_operation(op) for op in call.get("ops") or ()]
    results = await store.abatch(operations)
    return [_result(op, result) for op, result in zip(operations, results, strict=True)]


def _operation(op: Mapping[str, Any]) -> Any:
    ((name, given),) = op.items()
    members = {k: tuple(v) if k.startswith("namespace") else v for k, v in given.items()}
    if name == "get":
        return GetOp(**members)
    if name == "put":
        return PutOp(**members)
    if name == "search":
        return SearchOp(**members)
    if name == "namespaces":
        return _listing(members)
    raise Refused(f'the store does not know the operation "{name}"', "invalid")


def _listing(members: dict[str, Any]) -> ListNamespacesOp:
    conditions = tuple(
        MatchCondition(match_type=name, path=tuple(members.pop(name)))  # type: ignore[arg-type]
        for name in ("prefix", "suffix")
        if members.get(name)
    )
    kept = {k: v for k, v in members.items() if k in ("max_depth", "limit", "offset")}
    return ListNamespacesOp(match_conditions=conditions or None, **kept)


def _result(op: Any, result: Any) -> dict[str, Any]:
    if isinstance(op, GetOp):
        return {"item": None if result is None else _item(result)}
    if isinstance(op, SearchOp):
        return {"items": [_item(item) for item in result]}
    return {"namespaces": [list(ns) for ns in result]} if isinstance(op, ListNamespacesOp) else {}


def _item(item: Any) -> dict[str, Any]:
    members = ("namespace", "key", "value", "created_at", "updated_at")
    score = getattr(item, "score", None)
    return {**{name: getattr(item, name) for name in members}, **({} if score is None else {"score": score})}


def listed(parts: Sequence[str], saver: Any) -> list[str]:
    """Return which of these methods a checkpointer has."""
    return [name for name in parts if has(saver, name)]
