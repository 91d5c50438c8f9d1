"""The stream mode `messages`: whole messages as they grow, derived from token chunks and state values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage, BaseMessageChunk, RemoveMessage, message_chunk_to_message

Event = tuple[str, Any]

_HIDDEN = {"nostream", "langsmith:nostream", "langsmith:hidden"}


def hidden(metadata: Mapping[str, Any]) -> bool:
    """Say whether the model call asked not to be streamed."""
    return not _HIDDEN.isdisjoint(metadata.get("tags") or ())


class Messages:
    """What has been streamed of the messages of one run."""

    def __init__(self) -> None:
        self._growing: dict[str, BaseMessageChunk] = {}
        self._known: set[str] = set()
        self._complete: set[str] = set()

    def chunk(self, message: BaseMessage, metadata: Mapping[str, Any]) -> Iterator[Event]:
        """Take one item of the library's messages stream and yield the frames it causes."""
        number = message.id or ""
        if not isinstance(message, BaseMessageChunk):
            yield from self._whole(message)
            return
        if number not in self._known:
            self._known.add(number)
            yield "messages/metadata", {number: {"metadata": metadata}}
        before = self._growing.get(number)
        grown = message if before is None else before + message
        self._growing[number] = grown
        whole = message_chunk_to_message(grown)
        if message.content or before is None or whole != message_chunk_to_message(before):
            yield "messages/partial", [whole]

    def values(self, values: Any) -> Iterator[Event]:
        """Take a state and yield one frame with all messages in it that were not reported as complete."""
        new = [m for m in _messages(values) if m.id and m.id not in self._complete]
        if new:
            for message in new:
                self._finish(message.id or "")
            yield "messages/complete", new

    def _whole(self, message: BaseMessage) -> Iterator[Event]:
        """Take a message that was not streamed: it has no metadata frame (reference 10.1)."""
        number = message.id or ""
        if number in self._complete or isinstance(message, RemoveMessage):
            return
        self._finish(number)
        yield "messages/complete", [message]

    def _finish(self, number: str) -> None:
        self._complete.add(number)
        self._growing.pop(number, None)


def _messages(values: Any) -> Iterator[BaseMessage]:
    for field in _fields(values):
        if isinstance(field, BaseMessage):
            yield field
        elif isinstance(field, list | tuple):
            yield from (m for m in field if isinstance(m, BaseMessage) and not isinstance(m, RemoveMessage))


def _fields(values: Any) -> Iterable[Any]:
    if isinstance(values, Mapping):
        return values.values()
    if isinstance(values, list | tuple | BaseMessage):
        return (values,)
    return getattr(values, "__dict__", {}).values()
