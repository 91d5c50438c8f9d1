"""Cancelling what runs in threads: nothing can interrupt them, but the next model or tool call they make is refused."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler


class Stopper(BaseCallbackHandler):
    """A callback of one run that raises once the run is cancelled: before models and tools, and at each token."""

    raise_error = True
    run_inline = True
    ignore_chain = True
    ignore_retriever = True
    ignore_agent = True
    ignore_retry = True
    ignore_custom_event = True

    def __init__(self) -> None:
        self._stopped = False

    def stop(self) -> None:
        """Raise from now on."""
        self._stopped = True

    def check(self, *_: Any, **__: Any) -> None:
        """Raise CancelledError if the run is cancelled."""
        if self._stopped:
            raise asyncio.CancelledError("the run is cancelled")

    on_chat_model_start = check
    on_llm_start = check
    on_llm_new_token = check
    on_tool_start = check
