"""`retoma runners drain`: a runner leaves for good, also one that a parent keeps alive."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from retoma import Retoma
from retoma.engine.query import RunnerSeen
from tests.cli.conftest import PATIENCE, started, wait_for

APP = """
import os
from retoma import Context, Retoma

app = Retoma(os.environ["RETOMA_DATABASE_URL"])


@app.job
async def add(ctx: Context, n: int) -> int:
    return n + 1
"""


@pytest.fixture
def url(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETOMA_DATABASE_URL", database_url)
    (tmp_path / "adds.py").write_text(APP)
    asyncio.run(_made(database_url))
    return database_url


async def _made(url: str) -> None:
    async with Retoma(url) as app:
        await app.database()


def living(url: str) -> dict[str, RunnerSeen]:
    async def seen() -> list[RunnerSeen]:
        async with Retoma(url) as app:
            return await app.runners.list()

    return {each.name: each for each in asyncio.run(seen()) if each.living}


@contextmanager
def parent(folder: Path) -> Iterator[Any]:
    process = started("runner", "--app", "adds:app", "--processes", "2", folder=folder)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def test_e29_who_was_drained_is_not_started_again_and_the_last_one_takes_the_parent_along(
    url: str, tmp_path: Path, verb: Callable[..., Any]
):
    with parent(tmp_path) as keeper:
        wait_for(lambda: len(living(url)) == 2, "two should live")
        first, second = (living(url)[name] for name in ("runner-1", "runner-2"))

        told = verb("runners", "drain", "runner-1")
        wait_for(lambda: set(living(url)) == {"runner-2"}, "one should have left")
        refused = verb("runners", "drain", first.boot)
        said = json.loads(verb("runners", "drain", second.boot[:8], "--json").out)
        _, err = keeper.communicate(timeout=PATIENCE)

    assert (0, True) == (told.code, "was asked to leave" in told.out), told.err
    assert (1, True) == (refused.code, "gone already" in refused.err)
    assert second.boot == said["boot"]
    assert 0 == keeper.returncode, err
    assert "runner.died" not in err
    assert {} == living(url)
    assert 2 == len([line for line in err.splitlines() if '"runner.booted"' in line])


def test_who_is_meant_must_be_clear(url: str, verb: Callable[..., Any]):
    nobody = verb("runners", "drain", "nobody")
    empty = verb("runners", "drain", "")

    assert nobody.code == empty.code != 0
    assert "there is no runner nobody" in nobody.err
    assert 1 == len(nobody.err.strip().splitlines())
    assert "no runner is alive" in verb("runners", "list").out
    assert os.environ["RETOMA_DATABASE_URL"] == url
