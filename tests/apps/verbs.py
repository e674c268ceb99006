"""Verbs of an application's command line, typed while its house is there."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Said, verb

__all__ = ["chosen", "said", "typed", "verb"]

Verb = Callable[..., Said]


@pytest.fixture(autouse=True)
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the verbs ask is tested on both databases elsewhere; what they say, on the quicker one."""
    both = "database_url" in request.fixturenames
    url: str = request.getfixturevalue("database_url" if both else "sqlite_url")
    monkeypatch.setenv("RETOMA_DATABASE_URL", url)


async def typed(application: str, verb: Verb, *words: str) -> Said:
    """In a thread: a command runs a loop of its own."""
    return await asyncio.to_thread(verb, application, *words)


async def said(application: str, verb: Verb, *words: str) -> Any:
    done = await typed(application, verb, *words, "--json")
    assert 0 == done.code, done.err
    return json.loads(done.out)
