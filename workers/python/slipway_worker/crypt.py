"""Encryption by the application: handlers of a langgraph_sdk.Encryption object, or LANGGRAPH_AES_KEY (reference 13).

Values of checkpoints are encrypted in the worker, before they travel: the server stores what it cannot read. JSON the
server itself stores comes here by the calls `crypt.encrypt` and `crypt.decrypt`.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from . import jsonable
from .imports import LoadError, kind, named
from .refusals import Refused

_MARK = "+custom"
"""Ends the type of a value that handlers of the application have encrypted."""


class Encryption(Protocol):
    """What encrypts and decrypts."""

    seals: bool

    def described(self) -> dict[str, Any]:
        """Return what LOADED says about the part."""

    async def crypt(self, call: Mapping[str, Any]) -> Any:
        """Answer crypt.encrypt or crypt.decrypt."""

    def serde(self, inner: Any) -> Any:
        """Return the serialiser to use in place of inner."""


class Handlers:
    """The handlers of one Encryption object."""

    def __init__(self, spec: str) -> None:
        """Load what spec names. Raises LoadError if it is no Encryption object."""
        found = named(spec)
        names = [f"_{form}_{what}" for form in ("blob", "json") for what in ("encryptor", "decryptor")]
        if not all(hasattr(found, name) for name in names):
            raise LoadError(f"{spec} is {kind(found)}; an Encryption object of langgraph_sdk is needed")
        self._by = {
            (form, way): getattr(found, f"_{form}_{what}")
            for form in ("blob", "json")
            for way, what in (("crypt.encrypt", "encryptor"), ("crypt.decrypt", "decryptor"))
        }
        for form in ("blob", "json"):
            if (self._by[form, "crypt.encrypt"] is None) != (self._by[form, "crypt.decrypt"] is None):
                raise LoadError(
                    f"{spec} has only one of encrypt.{form} and decrypt.{form}: what one writes the other reads"
                )
        self.seals = self._by["blob", "crypt.encrypt"] is not None

    def described(self) -> dict[str, Any]:
        """Return what LOADED says about the part."""
        return {"json": self._by["json", "crypt.encrypt"] is not None, "blob": self.seals}

    def serde(self, inner: Any) -> Any:
        """Return inner: the handlers are asynchronous and come after it."""
        return inner

    async def crypt(self, call: Mapping[str, Any]) -> Any:
        """Answer crypt.encrypt or crypt.decrypt."""
        form, value = call.get("kind") or "json", call.get("value")
        if self._by.get((form, call["verb"])) is None:
            raise Refused(f"the Encryption object has no handler for {form} values", "invalid")
        given = base64.b64decode(value) if form == "blob" else value
        out = await self._call(form, call["verb"], call.get("model"), call.get("field"), call.get("context"), given)
        if form == "blob":
            return base64.b64encode(out).decode()
        if isinstance(value, Mapping) and set(out) != set(value):
            raise ValueError("a JSON handler of the Encryption object changed the keys: it may change values only")
        return out

    async def _call(self, form: str, way: str, model: Any, field: Any, context: Any, value: Any) -> Any:
        from langgraph_sdk.encryption.types import EncryptionContext

        handler: Callable[..., Any] = self._by[form, way]
        out = await handler(EncryptionContext(model=model, metadata=dict(context or {}), field=field), value)
        return getattr(out, "plaintext", out)

    async def seal(self, pieces: Sequence[dict[str, Any]], payload: bytes, context: Any) -> bytes:
        """Encrypt the values of a payload one by one and correct what their envelope says of them."""
        out, at = [], 0
        head = jsonable.dumps(context or {})
        for piece in pieces:
            raw = payload[at : at + piece["size"]]
            at += piece["size"]
            cipher = await self._call("blob", "crypt.encrypt", "checkpoint", piece.get("channel"), context, raw)
            out.append(len(head).to_bytes(4, "big") + head + cipher)
            piece.update(type=piece["type"] + _MARK, size=len(out[-1]))
        return b"".join(out)

    async def unseal(self, pieces: Sequence[dict[str, Any]], payload: bytes) -> bytes:
        """Undo seal; values from before there was encryption are left as they are."""
        out, at = [], 0
        for piece in pieces:
            raw = payload[at : at + piece["size"]]
            at += piece["size"]
            if piece["type"].endswith(_MARK):
                raw = await self._opened(piece.get("channel"), raw)
                piece.update(type=piece["type"].removesuffix(_MARK), size=len(raw))
            out.append(raw)
        return b"".join(out)

    async def _opened(self, channel: Any, raw: bytes) -> bytes:
        start = 4 + int.from_bytes(raw[:4], "big")
        context = jsonable.loads(raw[4:start])
        return await self._call("blob", "crypt.decrypt", "checkpoint", channel, context, raw[start:])


class AES:
    """The simple form: one key for values of checkpoints, and for chosen keys of JSON."""

    seals = False

    def __init__(self) -> None:
        """Read the key. Raises LoadError when it is missing or of a wrong length."""
        from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

        self._class = EncryptedSerializer
        size = len(os.environ.get("LANGGRAPH_AES_KEY", "").encode())
        if size not in (16, 24, 32):
            raise LoadError(f"LANGGRAPH_AES_KEY has {size} bytes: it must have 16, 24 or 32")
        try:
            self._serde = EncryptedSerializer.from_pycryptodome_aes()
        except ImportError as error:
            raise LoadError("LANGGRAPH_AES_KEY needs the package pycryptodome: add it to the dependencies") from error
        names = os.environ.get("LANGGRAPH_AES_JSON_KEYS", "").split(",")
        self._keys = frozenset(name.strip() for name in names if name.strip())

    def described(self) -> dict[str, Any]:
        """Return what LOADED says about the part."""
        return {"json": bool(self._keys), "blob": True}

    def serde(self, inner: Any) -> Any:
        """Return a serialiser that encrypts what inner writes."""
        return self._class(self._serde.cipher, inner)

    async def crypt(self, call: Mapping[str, Any]) -> Any:
        """Answer crypt.encrypt or crypt.decrypt."""
        encrypt, value = call["verb"] == "crypt.encrypt", call.get("value")
        if call.get("kind") == "blob":
            raw = base64.b64decode(value or "")
            return base64.b64encode(self._encrypt(raw) if encrypt else self._decrypt(raw)).decode()
        return self._walk(value, self._hide if encrypt else self._show)

    def _walk(self, value: Any, change: Callable[[Any], Any]) -> Any:
        if isinstance(value, list):
            return [self._walk(item, change) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {k: change(v) if k in self._keys else self._walk(v, change) for k, v in value.items()}

    def _hide(self, value: Any) -> Any:
        return _PREFIX + base64.b64encode(self._encrypt(jsonable.dumps(value))).decode()

    def _show(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith(_PREFIX):
            return value
        return jsonable.loads(self._decrypt(base64.b64decode(value.removeprefix(_PREFIX))))

    def _encrypt(self, raw: bytes) -> bytes:
        return self._serde.cipher.encrypt(raw)[1]

    def _decrypt(self, raw: bytes) -> bytes:
        return self._serde.cipher.decrypt("aes", raw)


_PREFIX = "slipway:aes:"


def load(part: Mapping[str, Any]) -> Encryption:
    """Load the part `encryption`."""
    return AES() if part.get("aes") else Handlers(part["path"])


class Bridge:
    """Runs handlers for code that cannot await: on a loop of its own, in a thread that starts with the first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of a coroutine."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="slipway-crypt", daemon=True).start()
        future: concurrent.futures.Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()
