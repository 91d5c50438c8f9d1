"""Embeddings of the store's index: `provider:model`, or a function or Embeddings object of the application."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

from .imports import LoadError, is_file, kind, named


class Embedder:
    """Turns texts into vectors."""

    def __init__(self, spec: str) -> None:
        """Load what spec names. Raises LoadError when it cannot embed."""
        self._embeddings = _own(spec) if is_file(spec.rpartition(":")[0]) else _provided(spec)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="slipway-embed", daemon=True).start()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the embedder's own event loop; from any thread."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    async def texts(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text."""
        if not texts:
            return []
        vectors = [[float(x) for x in vector] for vector in await self._embeddings.aembed_documents(list(texts))]
        if len(vectors) != len(texts):
            raise ValueError(f"the embedding function returned {len(vectors)} vectors for {len(texts)} texts")
        return vectors


def _own(spec: str) -> Any:
    from langchain_core.embeddings import Embeddings
    from langgraph.store.base import ensure_embeddings

    value = named(spec)
    if not isinstance(value, Embeddings) and not callable(value):
        raise LoadError(f"{spec} is {kind(value)}; a function of texts or an Embeddings object is needed")
    return ensure_embeddings(value)


def _provided(spec: str) -> Any:
    try:
        from langchain.embeddings import init_embeddings
    except ImportError as error:
        raise LoadError(
            f'the embedding model "{spec}" needs the package langchain ({error}): '
            "add it and the provider's package to the project's dependencies"
        ) from error
    return init_embeddings(spec)
