"""JSON of whatever a graph holds: messages, models, dataclasses, tuples with names, NaN.

orjson is used when the user's environment has it (langchain brings it along); the standard library otherwise. Both
write the same documents: compact, UTF-8, NaN and infinities as null.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

try:
    import orjson
except ImportError:  # pragma: no cover - depends on the user's environment
    orjson = None  # type: ignore[assignment]


def dumps(value: Any) -> bytes:
    """Return value as JSON. Never raises for a value's type: what has no JSON form is written as its repr."""
    if orjson is not None:
        try:
            return orjson.dumps(value, default, _OPTIONS)
        except (TypeError, ValueError, RecursionError):  # integers over 64 bits, lone surrogates, odd keys
            pass
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def loads(data: bytes) -> Any:
    """Parse JSON that came over the link. Integers over 64 bits keep their value."""
    if orjson is None or _BIG_NUMBER.search(data):
        return json.loads(data)
    try:
        return orjson.loads(data)
    except ValueError:  # lone surrogates, numbers beyond a float: valid JSON that orjson does not take
        return json.loads(data)


def default(value: Any) -> Any:
    """Return value in a form one step nearer to JSON. Used for everything JSON does not know; never raises."""
    try:
        for known, form in _FORMS:
            if isinstance(value, known):
                return form(value)
        return _by_method(value)
    except Exception:  # a property, a repr or an iterator of the user's that raises
        return f"<{type(value).__name__}>"


def text(value: Any) -> str:
    """Return str(value), or the name of its type in brackets where its own method raises."""
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def plain(value: Any, within: tuple[int, ...] = ()) -> Any:
    """Return value as dicts, lists, strings, numbers, booleans and None only. within are the ids of what holds it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, enum.Enum):
        return plain(value.value, (*within, id(value)))
    if isinstance(value, int):
        return int(value) if value.bit_length() < _MOST_BITS else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if id(value) in within:  # each branch of a value that holds itself twice would be written 2**_DEEP times
        return "[Circular]"
    if len(within) > _DEEP:
        return "..."
    inside = (*within, id(value))
    if isinstance(value, Mapping):
        return {_key(k): plain(v, inside) for k, v in value.items()}
    if isinstance(value, list) or type(value) is tuple:
        return [plain(v, inside) for v in value]
    return plain(default(value), inside)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, bool | int | float):
        return json.dumps(plain(key))
    return text(default(key))


def _by_method(value: Any) -> Any:
    if isinstance(value, type):
        return repr(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    for name in ("model_dump", "dict", "to_dict"):
        if callable(method := getattr(value, name, None)):
            try:
                return method()
            except Exception:
                break
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable) and hasattr(value, "__len__"):
        return list(value)
    return repr(value)


def _dataclass(value: Any) -> Any:
    if callable(method := getattr(value, "model_dump", None)):
        return method()
    fields = dataclasses.fields(value)
    out = {f.name: getattr(value, f.name, None) for f in fields if not f.name.startswith("_")}
    if type(value).__name__ == "Interrupt" and not isinstance(out.get("response_schema"), Mapping):
        out.pop("response_schema", None)
    return out


def _bytes(value: Any) -> str:
    raw = bytes(value)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode()


class _Dataclass(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return dataclasses.is_dataclass(value) and not isinstance(value, type)


class _AnyDataclass(metaclass=_Dataclass):
    """Stands for every dataclass instance."""


_DEEP = 200
_MOST_BITS = 14_000  # Python refuses to write longer integers in decimal: 4300 digits
_BIG_NUMBER = re.compile(rb"[:,\[\s]-?[0-9]{19}")
_OPTIONS = 0 if orjson is None else orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_NON_STR_KEYS
_FORMS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (_AnyDataclass, _dataclass),
    ((set, frozenset), list),
    ((bytes, bytearray, memoryview), _bytes),
    ((datetime.datetime, datetime.date, datetime.time), lambda v: v.isoformat()),
    (datetime.timedelta, lambda v: v.total_seconds()),
    (decimal.Decimal, lambda v: float(v) if v.is_finite() else None),
    ((uuid.UUID, pathlib.PurePath), str),
    (re.Pattern, lambda v: v.pattern),
    (enum.Enum, lambda v: v.value),
    (BaseException, repr),
)
