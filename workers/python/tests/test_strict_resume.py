"""The worker's own check, for libraries that do not know strict resume."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from slipway_worker.runner import UnknownInterruptError, check_resume

P, Q, GONE = "a" * 32, "b" * 32, "c" * 32


def check(resume, *waiting):
    async def state(config, subgraphs):
        return SimpleNamespace(tasks=[SimpleNamespace(interrupts=[SimpleNamespace(id=i) for i in waiting])])

    request = {"command": {"resume": resume}}
    asyncio.run(check_resume(SimpleNamespace(aget_state=state), {}, request))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("resume", "waiting"), [("yes", [P]), ({P: 1}, [P, Q]), ({"k": 1}, [P]), ("yes", []), (None, [])]
)
def test_accepted(resume, waiting):
    check(resume, *waiting)


@pytest.mark.parametrize(("resume", "waiting"), [("yes", [P, Q]), ({GONE: 1}, [P]), ({P: 1, GONE: 2}, [P]), ({}, [P])])
def test_refused(resume, waiting):
    with pytest.raises(UnknownInterruptError):
        check(resume, *waiting)
