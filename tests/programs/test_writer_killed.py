"""The writer killed with -9: counts stay exact, rows are those of an undisturbed run (M6, M7, E2)."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from retoma.codec import decode
from retoma.db import Database, verbatim
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.store.rows import job_by_key
from retoma.programs.writer.checks import Checker
from retoma.programs.writer.model import Report
from retoma.programs.writer.story import KIND
from retoma.programs.writer.target import Mark
from tests.outbound.fakes import Asked, Server, answer, serving
from tests.programs.processes import API_KEY, PATIENCE, Program, programs
from tests.programs.writers import (
    ad,
    add_profile,
    asked,
    desk_at,
    document,
    hash_of,
    rows_of,
    with_table,
)

# One that the database refuses, one that the profile does, one that comes twice.
ADS = [*(ad(n) for n in range(45)), ad(900, n=2_000_000), {"no": 1}, ad(44), ad(46)]
KILLS = (
    *("writer_begin.before_commit=kill", "writer_begin.after_commit=kill"),
    *("writer_group.before_commit=kill@2", "writer_group.after_commit=kill@2"),
    *("writer.after_group=kill@3", "writer_group.before_commit=kill@5"),
    *("writer_group.after_commit=kill@5", "writer.after_end=kill"),
    *("settle.before_commit=kill", "settle.after_commit=kill"),
)
LOST = ("writer_begin.after_commit=reply_lost", "writer_group.after_commit=reply_lost@2")
# The gate takes one between two groups and one after the last; `./run test --soak` takes them all.
SAMPLE = ("writer_group.after_commit=kill@2", "settle.before_commit=kill")
CALM = 0
KILLED = int(signal.SIGKILL)


class Lives:
    """Lives of a writer, one after the other, on one database."""

    def __init__(self, child: Process, target: Database, url: str) -> None:
        self._child = child
        self._target = target
        self._url = url

    async def live(self, job: str, armed: str = "") -> int:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        told = {"job": job, "armed": armed, "url": self._url}
        self._child.stdin.write(json.dumps(told).encode() + b"\n")
        return int(await asyncio.wait_for(self._child.stdout.readline(), PATIENCE))

    async def empty(self) -> None:
        gone = verbatim("DELETE FROM ads")
        await self._target.write(lambda tx: tx.for_caller(gone), verb="empty")


@asynccontextmanager
async def lives(url: str, folder: Path) -> AsyncIterator[tuple[Lives, Database]]:
    target = await with_table(url)
    desk = desk_at(folder)
    async with serving(answer(200, document(ADS))) as source:
        async with desk.retoma:
            await desk.ready()
            await add_profile(desk, url, source.url)
            await desk.close()
        words = (sys.executable, "-m", "tests.programs.run_writer", str(folder))
        child = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE)
        try:
            yield Lives(child, target, f"{source.url}/data.json"), target
        finally:
            assert child.stdin is not None
            child.stdin.close()
            await child.wait()
            target.close()


async def reports(folder: Path, jobs: list[str]) -> list[Report]:
    desk = desk_at(folder)
    async with desk.retoma:
        own = await desk.retoma.database()
        found = [await own.read(lambda tx, job=job: job_by_key(tx, KIND, job)) for job in jobs]  # type: ignore[misc]
    return [decode(str(each.result), Report) for each in found]


async def test_m6_m7_killed_anywhere_it_ends_as_if_nobody_had(database_url, tmp_path, soak):
    async with lives(database_url, tmp_path) as (those, target):
        assert CALM == await those.live("calm")
        undisturbed = hash_of(await rows_of(target))

        kills = KILLS if soak else SAMPLE
        for point in kills:
            await those.empty()
            assert KILLED == await those.live(point, point), point
            assert CALM == await those.live(point)
            assert undisturbed == hash_of(await rows_of(target)), point
        for point in LOST:
            await those.empty()
            assert CALM == await those.live(point, point)
            assert undisturbed == hash_of(await rows_of(target)), point

    calm, *others = await reports(tmp_path, ["calm", *kills, *LOST])
    assert (49, 49, 46, 3) == (calm.total, calm.processed, calm.stored, calm.failed)
    assert [45, 46, 47] == [each.index for each in calm.items]
    assert [calm] * len(others) == others


async def test_e2_a_writer_whose_claim_is_over_changes_nothing(database_url, tmp_path):
    """As one that was stopped and woken: a later claim has taken its mark over."""
    target = await with_table(database_url)
    desk = desk_at(tmp_path)
    try:
        async with desk.retoma:
            await desk.ready()
            await add_profile(desk, database_url, "https://example.org")
            profile = await desk.named("ads_v1")
            late = await desk.target(profile)
            group = Checker(profile).sort(0, [(ad(1), json.dumps(ad(1)))])
            was = await late.begin("job", 4)
            await late.begin("job", 5)

            with pytest.raises(LeaseLost):
                await late.store("job", 4, was, group, "d", last=False)
            with pytest.raises(LeaseLost):
                await late.begin("job", 4)

            assert [] == await rows_of(target)
            assert (Mark(), []) == await late.read("job")
            await desk.close()
    finally:
        target.close()


class Halting:
    """A source that stops in the middle until the writer is gone."""

    def __init__(self) -> None:
        self.whole = document([ad(n) for n in range(14_000)])
        self.gone = asyncio.Event()
        self.times = 0

    def __call__(self, _: Asked) -> Any:
        self.times += 1
        return self._first() if self.times == 1 else answer(200, self.whole)

    async def _first(self) -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(self.whole)
        yield self.whole[: len(self.whole) * 2 // 3]
        await self.gone.wait()


@pytest.mark.soak
async def test_m6_the_program_is_killed_and_started_again(tmp_path):
    url = f"sqlite:///{tmp_path / 'target.db'}"
    target = await with_table(url)
    halting = Halting()
    desk = desk_at(tmp_path)
    with programs(tmp_path) as those:
        async with serving(halting) as source:
            async with desk.retoma:
                await desk.ready()
                await add_profile(desk, url, source.url)
                await desk.close()
            program = await asyncio.to_thread(
                those.start,
                *("writer-service", "--database", desk.retoma.url),
                RETOMA_SECRET_KEY_FILE=str(tmp_path / "writer.key"),
            )
            told = await killed_in_the_middle(program, source, halting)
        rows = await rows_of(target)
        target.close()

    assert "completed" == told["status"]
    assert {
        "total": 14_000,
        "processed": 14_000,
        "success_count": 14_000,
        "failed_count": 0,
    } == (told["progress"])
    assert 14_000 == len(rows)
    assert 2 == halting.times


async def killed_in_the_middle(
    program: Program, source: Server, halting: Halting
) -> dict[str, Any]:
    headers = {"x-api-key": API_KEY}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http:
        body = {"job_id": "MIS-1", **asked(f"{source.url}/data.json")}
        made = await http.post(f"{program.origin}/process", json=body)
        assert 200 == made.status_code, made.text

        async def status() -> dict[str, Any]:
            told = (await http.get(f"{program.origin}/status/MIS-1")).json()
            await asyncio.sleep(0.02)
            return dict(told)

        while (await status())["progress"]["processed"] < 8_000:
            pass
        before = await status()
        assert ("processing", None) == (before["status"], before["progress"]["total"])
        program.kill()
        halting.gone.set()
        await asyncio.to_thread(program.start)
        again = await http.post(f"{program.origin}/process", json=body)
        assert made.json()["created_at"] == again.json()["created_at"]
        while (told := await status())["status"] == "processing":
            assert told["progress"]["processed"] >= before["progress"]["processed"]
        return told
