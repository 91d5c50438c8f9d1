from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_server import Process

NAMES = (
    *("trivial", "chain", "hitl", "two", "failing", "slow_a", "slow_s", "blocking", "sync_store", "memory", "parent"),
    *("parent_asks", "chat", "quiet_chat", "tooled", "functional", "fanning", "router", "greeting", "endless"),
    *("oddities", "echoing", "exiting", "breaking", "own", "speechless", "verbose", "mumbling", "abrupt"),
)


@pytest.fixture(scope="session")
def shared() -> Iterator[Process]:
    server = Process()
    server.loaded = server.load(**{name: f"./graphs.py:{name}" for name in NAMES})
    yield server
    server.close()


@pytest.fixture
def worker(shared: Process) -> Process:
    """The worker with all graphs loaded; tests use threads of their own."""
    failed = {name: said for name, said in shared.loaded["graphs"].items() if not said["ok"]}
    assert not failed
    return shared


@pytest.fixture
def fresh() -> Iterator[Process]:
    server = Process()
    yield server
    if server.process.poll() is None:
        server.close()
