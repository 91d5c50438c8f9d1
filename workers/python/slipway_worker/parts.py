"""What else of the application a worker loads beside its graphs (protocol, "Starting")."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from . import crypt, custom, serde
from .app import App
from .auth import Auth
from .embed import Embedder
from .exchange import Exchanges
from .imports import explain
from .link import Link
from .log import Log
from .saver import Saver
from .store import Store

Load = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]


class Parts:
    """The parts of one worker. What is absent stays None."""

    def __init__(self, link: Link, exchanges: Exchanges, log: Log, warn: Callable[[str], None]) -> None:
        self.auth: Auth | None = None
        self.app: App | None = None
        self.embedder: Embedder | None = None
        self.encryption: crypt.Encryption | None = None
        self.checkpointer: Any = None
        self.store: Any = None
        self.serde: Any = serde.configured(None, warn)
        self._link = link
        self._exchanges = exchanges
        self._log = log
        self._warn = warn
        self._stack = contextlib.AsyncExitStack()
        self._bridge = crypt.Bridge()

    async def load(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Load every part that is named; return what LOADED says of each."""
        loads: dict[str, Load] = {
            "encryption": self._load_encryption,
            "checkpointer": self._load_checkpointer,
            "store": self._load_store,
            "embed": self._load_embed,
            "auth": self._load_auth,
            "app": self._load_app,
        }
        return {name: await _told(load, parts[name]) for name, load in loads.items() if parts.get(name)}

    async def close(self) -> None:
        """End what was started: the app's lifespan, then custom checkpointers and stores."""
        if self.app is not None:
            await self.app.stop()
        await self._stack.aclose()

    @property
    def closable(self) -> bool:
        """Say whether there is anything to close."""
        return self.app is not None or self.checkpointer is not None or self.store is not None

    def saver(self, *, run: int = 0, wait: bool = True, fresh: str | None = None, context: Any = None) -> Any:
        """Return the checkpointer for one run or one call."""
        if self.checkpointer is not None:
            return self.checkpointer
        sealing = (self.encryption, self._bridge, context) if self.encryption and self.encryption.seals else None
        return Saver(self._link, run=run, wait=wait, fresh=fresh, serde=self.serde, sealing=sealing)

    def items(self, *, run: int = 0) -> Any:
        """Return the store for one run or one call."""
        return self.store if self.store is not None else Store(self._link, run=run)

    async def _load_encryption(self, part: Mapping[str, Any]) -> dict[str, Any]:
        self.encryption = crypt.load(part)
        self.serde = self.encryption.serde(self.serde)
        return self.encryption.described()

    async def _load_checkpointer(self, part: Mapping[str, Any]) -> dict[str, Any]:
        if part.get("serde"):
            plain = serde.configured(part["serde"], self._warn)
            self.serde = self.encryption.serde(plain) if self.encryption else plain
        if not part.get("path"):
            return {}
        self.checkpointer = custom.checked_saver(part["path"], await custom.opened(part["path"], self._stack))
        return {"methods": custom.listed(custom.OPTIONAL, self.checkpointer)}

    async def _load_store(self, part: Mapping[str, Any]) -> dict[str, Any]:
        self.store = custom.checked_store(part["path"], await custom.opened(part["path"], self._stack))
        return {}

    async def _load_embed(self, part: Mapping[str, Any]) -> dict[str, Any]:
        self.embedder = Embedder(part["spec"])
        return {}

    async def _load_auth(self, part: Mapping[str, Any]) -> dict[str, Any]:
        self.auth = Auth(part["path"])
        return self.auth.described()

    async def _load_app(self, part: Mapping[str, Any]) -> dict[str, Any]:
        app = App(part["path"], self._exchanges, self._log)
        await app.start()
        self.app = app
        return app.described()


async def _told(load: Load, part: Any) -> dict[str, Any]:
    try:
        return {"ok": True, **await load(part)}
    except (Exception, SystemExit) as error:
        spec = part.get("path") or part.get("spec") or "LANGGRAPH_AES_KEY"
        return {"ok": False, "error": explain(spec, error)}
