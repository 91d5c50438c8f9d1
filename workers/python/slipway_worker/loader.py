"""Loading graphs from what the configuration names (reference 13).

A spec is `./dir/file.py:attribute` or `package.module:attribute`. The attribute may be a compiled graph, an uncompiled
StateGraph, an @entrypoint function, or a factory that makes one of these for each operation.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import types
import typing
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from .imports import LoadError, explain, kind, named
from .users import user_of

CREATE_RUN, UPDATE, READ, DESCRIBE = "threads.create_run", "threads.update", "threads.read", "assistants.read"
"""Why a factory is called: its ServerRuntime's access_context."""


class Operation(NamedTuple):
    """What a factory may want to know of the operation it makes a graph for."""

    access: str
    config: Mapping[str, Any]
    store: Any = None
    context: Any = None


class Graph:
    """One graph of the deployment: a compiled graph, or a factory that makes one per operation."""

    def __init__(self, graph_id: str, source: Pregel | Callable[..., Any], warn: Callable[[str], None]) -> None:
        self.graph_id = graph_id
        self._warn = warn
        self._arguments: dict[str, str] = {}
        self._context_type: Any = None
        self.described: dict[Any, Any] = {}
        self.compiled = source if isinstance(source, Pregel) else None
        if self.compiled is not None:
            self._check_own(self.compiled)
        else:
            self._factory = typing.cast(Callable[..., Any], source)
            self._arguments = injected(self._factory)
            self._context_type = context_type(self._factory)

    @contextlib.asynccontextmanager
    async def open(self, operation: Operation) -> AsyncIterator[Pregel]:
        """Give the graph for one operation; what a factory opened is closed afterwards."""
        if self.compiled is not None:
            yield self.compiled
            return
        async with contextlib.AsyncExitStack() as stack:
            made = self._factory(**self._values(operation))
            if inspect.isawaitable(made):
                made = await made
            if hasattr(made, "__aenter__"):
                made = await stack.enter_async_context(made)
            elif hasattr(made, "__enter__"):
                made = stack.enter_context(made)
            graph = as_graph(made)
            if graph is None:
                raise LoadError(f'the factory of graph "{self.graph_id}" returned {kind(made)}, which is no graph')
            self._check_own(graph)
            yield graph

    def _values(self, operation: Operation) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, what in self._arguments.items():
            values[name] = operation.config if what == "config" else _runtime(operation, self._context_type)
        return values

    def _check_own(self, graph: Pregel) -> None:
        for part in ("checkpointer", "store"):
            own = getattr(graph, part, None)
            if own is not None and not isinstance(own, bool):
                self._warn(
                    f'graph "{self.graph_id}" is compiled with its own {part} {type(own).__name__}: '
                    f"it is replaced by the platform's, so remove it from compile()"
                )


def load(graph_id: str, spec: str, warn: Callable[[str], None]) -> Graph:
    """Import what spec names and return it as a graph. Raises LoadError or whatever the user's module raises."""
    value = named(spec)
    graph = as_graph(value)
    if graph is not None:
        return Graph(graph_id, graph, warn)
    if callable(value):
        return Graph(graph_id, value, warn)
    raise LoadError(f"{spec} is {kind(value)}; a compiled graph, a StateGraph or a factory is needed")


def as_graph(value: Any) -> Pregel | None:
    """Return value as a compiled graph, compiling a StateGraph; None if it is neither."""
    if isinstance(value, Pregel):
        return value
    if isinstance(value, StateGraph):
        return value.compile()
    return None


def injected(factory: Callable[..., Any]) -> dict[str, str]:
    """Say which of the factory's parameters gets the config and which the runtime, by their type annotations."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return {}
    hints = _hints(factory)
    found: dict[str, str] = {}
    open_ones = []
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if (what := _injection(hints.get(p.name))) is not None:
            found[p.name] = what
        elif p.default is p.empty:
            open_ones.append(p.name)
    if len(open_ones) == 1 and "config" not in found.values() and open_ones[0] not in hints:
        return {**found, open_ones[0]: "config"}
    if open_ones:
        names = ", ".join(f'"{name}"' for name in open_ones)
        raise LoadError(
            f"{getattr(factory, '__name__', 'the factory')} needs {names}: annotate each parameter as RunnableConfig "
            "or ServerRuntime, or give it a default"
        )
    return found


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    target = inspect.unwrap(factory)
    if not inspect.isroutine(target) and not inspect.isclass(target):
        target = type(target).__call__
    if inspect.isclass(target):
        target = target.__init__
    try:
        return typing.get_type_hints(target)
    except Exception:
        return dict(getattr(target, "__annotations__", {}))


def _injection(annotation: Any) -> str | None:
    if annotation is None:
        return None
    if isinstance(annotation, str):
        return {"RunnableConfig": "config", "ServerRuntime": "runtime"}.get(annotation.split("[")[0].split(".")[-1])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        found = [_injection(a) for a in typing.get_args(annotation)]
        return next((f for f in found if f), None)
    origin = typing.get_origin(annotation) or annotation
    if origin is RunnableConfig or origin in (dict, Mapping, Any):
        return "config"
    name = getattr(origin, "__name__", "")
    return "runtime" if name in ("ServerRuntime", "_ExecutionRuntime", "_ReadRuntime") else None


def context_type(factory: Callable[..., Any]) -> Any:
    """Return T of the factory's ServerRuntime[T] parameter, or None."""
    for annotation in _hints(factory).values():
        found = next((a for a in (annotation, *typing.get_args(annotation)) if _injection(a) == "runtime"), None)
        if found is not None and typing.get_args(found):
            return typing.get_args(found)[0]
    return None


def _runtime(operation: Operation, wanted: Any) -> Any:
    from langgraph_sdk import runtime

    common = {"access_context": operation.access, "user": user_of(operation.config), "store": operation.store}
    if operation.access == CREATE_RUN:
        return runtime._ExecutionRuntime(**common, context=_typed(operation.context, wanted))
    return runtime._ReadRuntime(**common)


def _typed(context: Any, wanted: Any) -> Any:
    """Return a client's context as the dataclass or model the factory's annotation names."""
    if not isinstance(context, Mapping) or not isinstance(wanted, type):
        return context
    if callable(validate := getattr(wanted, "model_validate", None)):
        return validate(context)
    return wanted(**context) if dataclasses.is_dataclass(wanted) else context


async def load_all(
    specs: Mapping[str, str], warn: Callable[[str], None]
) -> tuple[dict[str, Graph], dict[str, dict[str, Any]]]:
    """Load every graph; return those that loaded and, for each id, what LOADED says about it."""
    graphs: dict[str, Graph] = {}
    said: dict[str, dict[str, Any]] = {}
    for graph_id, spec in specs.items():
        try:
            graphs[graph_id] = load(graph_id, spec, warn)
            said[graph_id] = {"ok": True, "factory": graphs[graph_id].compiled is None}
        except (Exception, SystemExit) as error:
            said[graph_id] = {"ok": False, "error": explain(spec, error)}
        await asyncio.sleep(0)
    return graphs, said
