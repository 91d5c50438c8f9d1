"""Importing what the configuration names: `./dir/file.py:attribute` or `package.module:attribute` (reference 13)."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
import traceback
import types
from pathlib import Path
from typing import Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel


class LoadError(Exception):
    """A graph cannot be loaded; the text is one readable sentence."""


def named(spec: str) -> Any:
    """Import what spec names and return it. Raises LoadError or whatever the user's module raises."""
    where, _, name = spec.rpartition(":")
    if not where or not name:
        raise LoadError(f'"{spec}" names no attribute: write ./path/to/file.py:attribute or package.module:attribute')
    module = _import_file(where) if is_file(where) else importlib.import_module(where)
    return _attribute(module, where, name)


def is_file(where: str) -> bool:
    """Say whether the part of a spec before the colon is a path and no dotted module."""
    return where.endswith(".py") or "/" in where


def explain(spec: str, error: BaseException) -> dict[str, str]:
    """Return a load failure as LOADED reports it: type, one readable sentence, and the trace."""
    text = str(error) if isinstance(error, LoadError) else f"{spec} cannot be loaded: {sentence(error)}"
    return {
        "error": type(error).__name__,
        "message": text,
        "trace": "".join(traceback.format_exception(error)),
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


def sentence(error: BaseException) -> str:
    """Return an exception as one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def kind(value: Any) -> str:
    """Say what a value is, in a sentence."""
    return "None" if value is None else f"a {type(value).__name__}"
