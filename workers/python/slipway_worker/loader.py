"""Loading graphs from what the configuration names (reference 13).

A spec is `./dir/file.py:attribute` or `package.module:attribute`. The attribute may be a compiled graph, an uncompiled
StateGraph, an @entrypoint function, or a factory that makes one of these for each operation.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
import types
import typing
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

CREATE_RUN, UPDATE, READ = "threads.create_run", "threads.update", "threads.read"
"""Why a factory is called: its ServerRuntime's access_context."""


class LoadError(Exception):
    """A graph cannot be loaded; the text is one readable sentence."""


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
        self.compiled = source if isinstance(source, Pregel) else None
        if self.compiled is not None:
            self._check_own(self.compiled)
        else:
            self._factory = typing.cast(Callable[..., Any], source)
            self._arguments = injected(self._factory)

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
                raise LoadError(f'the factory of graph "{self.graph_id}" returned {_kind(made)}, which is no graph')
            self._check_own(graph)
            yield graph

    def _values(self, operation: Operation) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, what in self._arguments.items():
            values[name] = operation.config if what == "config" else _runtime(operation)
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
    where, _, name = spec.rpartition(":")
    if not where or not name:
        raise LoadError(f'"{spec}" names no attribute: write ./path/to/file.py:attribute or package.module:attribute')
    module = _import_file(where) if where.endswith(".py") or "/" in where else importlib.import_module(where)
    value = _attribute(module, where, name)
    graph = as_graph(value)
    if graph is not None:
        return Graph(graph_id, graph, warn)
    if callable(value):
        return Graph(graph_id, value, warn)
    raise LoadError(f"{where}:{name} is {_kind(value)}; a compiled graph, a StateGraph or a factory is needed")


def explain(spec: str, error: BaseException) -> dict[str, str]:
    """Return a load failure as LOADED reports it: type, one readable sentence, and the trace."""
    text = str(error) if isinstance(error, LoadError) else f"{spec} cannot be loaded: {_sentence(error)}"
    return {
        "error": type(error).__name__,
        "message": text,
        "trace": "".join(traceback.format_exception(error)),
    }


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


def _runtime(operation: Operation) -> Any:
    from langgraph_sdk import runtime

    user = (operation.config.get("configurable") or {}).get("langgraph_auth_user")
    common = {"access_context": operation.access, "user": _user(user), "store": operation.store}
    if operation.access == CREATE_RUN:
        return runtime._ExecutionRuntime(**common, context=operation.context)
    return runtime._ReadRuntime(**common)


def _user(user: Any) -> Any:
    return User(user) if isinstance(user, Mapping) else user


class User(dict):
    """The authenticated user, as attributes and as items."""

    def __getattr__(self, name: str) -> Any:
        """Return a member, or what it is by default."""
        if name in self:
            return self[name]
        if name in _USER_DEFAULTS:
            return _USER_DEFAULTS[name](self)
        raise AttributeError(name)


_USER_DEFAULTS: dict[str, Callable[[User], Any]] = {
    "identity": lambda user: "",
    "display_name": lambda user: user.get("identity", ""),
    "is_authenticated": lambda user: True,
    "permissions": lambda user: [],
}


def _import_file(where: str) -> types.ModuleType:
    path = Path(where).resolve()
    if not path.is_file():
        raise LoadError(f'the file "{where}" does not exist{_near(path)}')
    if dotted := _package_name(path):
        return importlib.import_module(dotted)
    name = "slipway_graph_" + os.path.relpath(path).replace(os.sep, "__").removesuffix(".py").replace(".", "_")
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f'the file "{where}" cannot be imported: it is no Python file')
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _package_name(path: Path) -> str | None:
    """Return the dotted name of a file inside a package that can be imported, so that relative imports work."""
    if not (path.parent / "__init__.py").is_file():
        return None
    top = path.parent
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    roots = {Path(entry or ".").resolve() for entry in sys.path}
    if top.parent not in roots:
        return None
    parts = path.with_suffix("").relative_to(top.parent).parts
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def _near(path: Path) -> str:
    names = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, 1)
    return f'; did you mean "{close[0]}"?' if close else ""


def _attribute(module: types.ModuleType, where: str, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise LoadError(f'{where} has no "{name}"{_meant(module, name)}')
        value = getattr(value, part)
    return value


def _meant(module: types.ModuleType, name: str) -> str:
    public = [n for n in vars(module) if not n.startswith("_")]
    if close := difflib.get_close_matches(name, public, 1):
        return f'; did you mean "{close[0]}"?'
    graphs = [n for n in public if isinstance(getattr(module, n), Pregel | StateGraph)]
    return f"; it has the graph {', '.join(graphs)}" if graphs else ""


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


async def load_all(
    specs: Mapping[str, str], warn: Callable[[str], None]
) -> tuple[dict[str, Graph], dict[str, dict[str, Any]]]:
    """Load every graph; return those that loaded and, for each id, what LOADED says about it."""
    graphs: dict[str, Graph] = {}
    said: dict[str, dict[str, Any]] = {}
    for graph_id, spec in specs.items():
        try:
            graphs[graph_id] = load(graph_id, spec, warn)
            said[graph_id] = {"ok": True}
        except (Exception, SystemExit) as error:
            said[graph_id] = {"ok": False, "error": explain(spec, error)}
        await asyncio.sleep(0)
    return graphs, said
