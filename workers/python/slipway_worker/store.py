"""The key-value store the worker gives to graphs: one batch of operations is one question (reference 15)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from .link import Link


class Store(BaseStore):
    """A store over the link, for one run or for one call."""

    supports_ttl = True

    def __init__(self, link: Link, *, run: int = 0) -> None:
        """run is the run's stream, 0 outside a run."""
        self._link = link
        self._run = run

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do all operations in order and return their results; may be called from any thread."""
        listed = list(ops)
        answer = self._link.ask_sync("store.batch", self._envelope(listed))
        return [_result(op, r) for op, r in zip(listed, answer.envelope["results"], strict=True)]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do all operations in order and return their results."""
        listed = list(ops)
        answer = await self._link.ask("store.batch", self._envelope(listed))
        return [_result(op, r) for op, r in zip(listed, answer.envelope["results"], strict=True)]

    def _envelope(self, ops: list[Op]) -> dict[str, Any]:
        return {"run": self._run, "ops": [_operation(op) for op in ops]}


def _operation(op: Op) -> dict[str, Any]:
    if isinstance(op, GetOp):
        return {"get": {"namespace": op.namespace, "key": op.key, "refresh_ttl": op.refresh_ttl}}
    if isinstance(op, PutOp):
        return {"put": _put(op)}
    if isinstance(op, SearchOp):
        return {"search": {k: v for k, v in op._asdict().items() if v is not None}}
    if isinstance(op, ListNamespacesOp):
        return {"namespaces": _namespaces(op)}
    raise ValueError(f"the store does not know the operation {type(op).__name__}")


def _put(op: PutOp) -> dict[str, Any]:
    put: dict[str, Any] = {"namespace": op.namespace, "key": op.key, "value": op.value}
    if op.index is not None:
        put["index"] = op.index
    if op.ttl is not None:
        put["ttl"] = op.ttl
    return put


def _namespaces(op: ListNamespacesOp) -> dict[str, Any]:
    asked: dict[str, Any] = {"limit": op.limit, "offset": op.offset}
    for condition in op.match_conditions or ():
        asked[condition.match_type] = condition.path
    if op.max_depth is not None:
        asked["max_depth"] = op.max_depth
    return asked


def _result(op: Op, answer: dict[str, Any]) -> Result:
    if isinstance(op, GetOp):
        item = answer.get("item")
        return None if item is None else Item(**{k: item[k] for k in _ITEM})
    if isinstance(op, SearchOp):
        return [SearchItem(**_search_item(item)) for item in answer.get("items") or ()]
    if isinstance(op, ListNamespacesOp):
        return [tuple(ns) for ns in answer.get("namespaces") or ()]
    return None


def _search_item(item: dict[str, Any]) -> dict[str, Any]:
    fields = {k: item[k] for k in _ITEM}
    return {**fields, "namespace": tuple(item["namespace"]), "score": item.get("score")}


_ITEM = ("namespace", "key", "value", "created_at", "updated_at")
