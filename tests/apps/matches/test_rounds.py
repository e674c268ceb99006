"""Rounds: one run at a time, discovery that only adds, a gate that opens when all is there."""

import asyncio
import json
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import permutations
from random import Random
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from retoma.apps.matches import store
from retoma.apps.matches.sandbox import Match, Odd
from retoma.apps.matches.schemas import MatchPage, MatchRef, from_json
from retoma.apps.matches.store.rows import Round
from retoma.db import migrations
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import IllegalMove, NotFound
from tests.apps.matches.aids import LEAGUE, WHO, House, Watched, house
from tests.apps.quotes.aids import serving

ROOM = migrations.Room("matches", "retoma.apps.matches.migrations")


def refs(there: House, number: int = 1) -> list[MatchRef]:
    origin = there.settings.matches_url
    return [
        MatchRef.model_validate(
            {**match.listed(), "url": f"{origin}{match.path}"}, strict=False
        )
        for match in there.truth(number)
    ]


async def found(there: House, run: int, these: Sequence[MatchRef]) -> int:
    return await there.app.write(lambda tx: store.runs.discovered(tx, run, these))


async def test_starts_at_the_same_moment_make_one_run(database_url):
    """R5 H-41: in two houses on one database; another round is another run."""
    async with (
        house(database_url, clock=Clock()) as there,
        house(database_url, clock=Clock()) as beside,
    ):
        begun = await asyncio.gather(
            *(each.start() for each in (there, beside) * 5), there.start(2), beside.start(2)
        )

        assert 2 == len({run for run, _ in begun})
        assert 2 == sum(new for _, new in begun)
        assert [(2,)] == await there.rows(
            "SELECT count(*) FROM jobs WHERE kind = 'matches.discovery'"
        )


ROUNDS = range(1, 7)
OPEN_TWICE = """SELECT league, season, round FROM scrape_jobs WHERE open = 1
GROUP BY league, season, round HAVING count(*) > 1 OR count(ended_at) > 0"""


async def test_whoever_starts_or_retries_at_the_same_moment_has_one_run(database_url):
    """R5 H-46: of a round that has failed nothing is open but its current run, and that once."""
    async with AsyncExitStack() as stack:
        houses = [
            await stack.enter_async_context(house(database_url, clock=Clock())) for _ in "abc"
        ]
        there = await failed(houses[0])
        calls = [
            each.app.write(partial(call, of=there.of(number)))
            for number in ROUNDS
            for each in houses
            for call in (start, again, missing)
        ]
        Random(7).shuffle(calls)
        await once_each(there, await asyncio.gather(*calls))


async def test_who_comes_while_another_has_not_committed_finds_what_that_one_did(database_url):
    """R5: each after each other, which is held up before its end; on SQLite nobody can come then."""
    async with (
        house(database_url, clock=Clock()) as there,
        house(database_url, clock=Clock()) as beside,
    ):
        await failed(there)
        told = []
        for number, (first, second) in zip(ROUNDS, permutations(CALLS, 2), strict=True):
            of, came = there.of(number), threading.Event()
            slow = asyncio.create_task(there.app.write(partial(held_up, first, came, of=of)))
            quick = asyncio.create_task(beside.app.write(partial(second, of=of)))
            await asyncio.wait({quick}, timeout=0.1)  # it waits for the other, or is wrong
            came.set()
            told += [await slow, await quick]

        await once_each(there, told)


async def failed(there: House) -> House:
    """Nothing of the rounds could be found."""
    there.ill("/", 403)
    for number in ROUNDS:
        await there.start(number)
    await there.drained()
    assert {("dead",)} == set(await there.rows("SELECT state FROM jobs"))
    return there


async def once_each(there: House, told: Sequence[list[int]]) -> None:
    """Of each round one run is open, and what was tried again was so by one of those who asked."""
    assert [] == await there.rows(OPEN_TWICE)
    [(open_,)] = await there.rows("SELECT count(*) FROM scrape_jobs WHERE open = 1")
    assert len(ROUNDS) == open_
    retried = [job for each in told for job in each]
    assert len(set(retried)) == len(retried)
    [(events,)] = await there.rows("SELECT count(*) FROM events WHERE type = 'again'")
    assert len(retried) == events


def start(tx: Any, of: Round) -> list[int]:
    store.runs.start(tx, of, actor=WHO)
    return []


def again(tx: Any, of: Round) -> list[int]:
    return store.runs.retry_failed(tx, league=of.league, round_=of.round, actor=WHO)


def missing(tx: Any, of: Round) -> list[int]:
    return list(store.runs.retry_missing(tx, of, actor=WHO).again)


CALLS = (start, again, missing)


def held_up(call: Any, until: threading.Event, tx: Any, of: Round) -> list[int]:
    told: list[int] = call(tx, of)
    until.wait(10)
    return told


async def test_a_later_discovery_only_adds(database_url):
    """H-40: tasks and their number are there together, and what was found once is never lost."""
    async with house(database_url) as there:
        run, _ = await there.start()
        listed = refs(there)

        assert 3 == await found(there, run, listed[:3])
        first = await there.tasks(run)
        assert 2 == await found(there, run, listed[1:5])
        assert 0 == await found(there, run, listed[:2])
        later = await there.tasks(run)
        assert first == {key: later[key] for key in first}
        assert (10, 5) == ((await there.seen(run))["expected"], len(later))

        await there.drained()
        told = await there.seen(run)
        assert ("DONE", 10, True) == (told["status"], told["expected"], told["complete"])
        again, _ = await there.start()
        assert 10 == await found(there, again, listed[:1])


async def test_the_gate_opens_when_every_match_is_stored_and_not_before(database_url):
    """R3: neither while one has failed, nor while a person has left one out."""
    async with house(database_url) as there:
        bad, *_ = there.truth()
        there.site.world.make_odd(LEAGUE, bad.key, Odd.SCORE_100)
        run = await there.scraped()
        told = await there.seen(run)
        assert ("FAILED", False, 9, 1) == tuple(
            told[name] for name in ("status", "complete", "stored", "failed")
        )
        job = (await there.tasks(run))[bad.key]["job"]
        await there.app.skip(job, "nobody needs it", actor=WHO)
        told = await there.seen(run)
        assert ("FAILED", False, 1) == tuple(
            told[name] for name in ("status", "complete", "left_out")
        )
        assert "SKIPPED" == (await there.tasks(run))[bad.key]["status"]
        assert [] == await there.rows("SELECT 1 FROM jobs WHERE kind = 'matches.complete'")

        there.site.world.make_odd(LEAGUE, bad.key, None)
        tried = await there.app.write(
            lambda tx: store.runs.retry_missing(tx, there.of(), actor=WHO)
        )
        assert ((bad.key,), (job,), True) == (tried.missing, tried.again, tried.new)
        twice = await there.app.write(
            lambda tx: store.runs.retry_missing(tx, there.of(), actor=WHO)
        )
        assert ((bad.key,), (), False) == (twice.missing, twice.again, twice.new)
        await there.drained()
        told = await there.seen(run)
        assert ("DONE", True, 10) == tuple(
            told[name] for name in ("status", "complete", "stored")
        )
        assert [(1,)] == await there.rows(
            "SELECT count(*) FROM jobs WHERE kind = 'matches.complete'"
        )
        assert 2 == there.asked()[f"/{LEAGUE}/2026/rodada/1"]


async def test_whoever_waits_is_told_once_that_a_round_is_complete(database_url):
    """R3: by the transaction that stores its last match; sent again under the same key where it failed."""
    heard: list[tuple[str, dict[str, Any]]] = []

    async def hook(request: Request) -> Response:
        heard.append((request.headers["idempotency-key"], json.loads(await request.body())))
        return Response(status_code=503 if len(heard) == 1 else 204)

    listening = Starlette(routes=[Route("/hook", hook, methods=["POST"])])
    async with serving(listening) as port:
        where = f"http://127.0.0.1:{port}/hook"
        async with house(database_url, matches_webhook=where) as there:
            run = await there.scraped()

    (first, told), (second, again) = heard
    assert (first, told) == (second, again)
    assert {"event": "round.complete", "job_id": run, "matches": 10, "round": 1} == {
        name: told[name] for name in ("event", "job_id", "matches", "round")
    }


async def test_the_schema_goes_and_comes_back_and_nothing_is_lost(database_url):
    """What was stored stays under other names when the application is taken out."""
    async with house(database_url) as there:
        await there.scraped()
        database = await there.app.database()
        await migrations.downgrade(database, to=0, room=ROOM)
        assert [(10, 10)] == await there.rows(
            "SELECT (SELECT count(*) FROM partidas_kept), (SELECT count(*) FROM scrape_tasks_kept)"
        )
        await migrations.upgrade(database, room=ROOM)
        assert [] == await there.rows("SELECT 1 FROM scrape_jobs")


async def test_a_round_that_cannot_be_read_is_told_of(database_url):
    """H-43 H-47: links that lead off the site, a page that was cut; nothing of it is taken up."""
    async with house(database_url) as there:
        first, second, third, *_ = (there.truth(number)[0] for number in (1, 2, 3, 4))
        for match, how in (
            (first, Odd.TO_LOOPBACK),
            (second, Odd.NOT_LISTED),
            (third, Odd.LISTED_TWICE),
        ):
            there.site.world.make_odd(LEAGUE, match.key, how)
        runs = [(await there.start(number))[0] for number in (1, 2, 3)]
        await there.drained()

        paths = []
        for run in runs:
            told = await there.seen(run)
            assert ("FAILED", None, "SCHEMA_INVALID") == tuple(
                told[name] for name in ("status", "expected", "error_code")
            )
            assert await there.app.evidence.read(told["snapshot"])
            paths.append(told["error"]["path"])
            assert {} == await there.tasks(run)
        assert ["matches[0].url", "total", "matches[0].key"] == paths
        assert 3 == there.asked().total()

        for match in (first, second, third):
            there.site.world.make_odd(LEAGUE, match.key, None)
        tried = await there.app.write(lambda tx: store.runs.retry_failed(tx, actor=WHO))
        await there.drained()
        assert 3 == len(tried)
        assert [True] * 3 == [(await there.seen(run))["complete"] for run in runs]


async def test_ten_are_tried_again_by_as_few_statements_as_one(database_url):
    async with house(database_url) as there:
        for match in (*there.truth(1), there.truth(2)[0]):
            there.site.world.make_odd(LEAGUE, match.key, Odd.SCORE_100)
        runs = [await there.scraped(number) for number in (1, 2)]
        asked: list[int] = []

        def again(tx: Any, run: int) -> list[int]:
            told: list[None] = []
            watched: Any = Watched(tx, lambda: told.append(None), lambda: None)
            moved = store.runs.retry_failed(watched, run=run, actor=WHO)
            asked.append(len(told))
            return moved

        moved = [await there.app.write(partial(again, run=run)) for run in runs]
        assert [10, 1] == [len(each) for each in moved]
        assert asked[0] == asked[1]
        assert [[], []] == [await there.app.write(partial(again, run=run)) for run in runs]


async def test_what_is_no_run_or_task_is_refused(database_url):
    async with house(database_url) as there:
        database = await there.app.database()
        for ask in (
            lambda tx: store.runs.job_seen(tx, 9),
            lambda tx: store.tasks.task_seen(tx, 9),
            lambda tx: store.games.match_seen(tx, 9),
            lambda tx: store.runs.round_seen(tx, there.of()),
        ):
            with pytest.raises(NotFound):
                await database.read(ask)


async def test_an_address_that_left_the_site_is_asked_for_by_nobody(database_url):
    """H-47: the list of hosts holds when a page is fetched, whatever stands in the table."""
    async with house(database_url) as there:
        run, _ = await there.start()
        bad = refs(there)[0].model_copy(update={"url": "http://127.0.0.1:1/admin"})
        await found(there, run, [bad])
        await there.drained()

        task = (await there.tasks(run))[bad.key]
        assert ("FAILED", "OFF_SITE") == (task["status"], task["error_code"])
        assert [f"/{LEAGUE}/2026/rodada/1"] == [
            path for path in there.asked() if "rodada" in path
        ]
        wrong = page_of(there.truth()[1])
        with pytest.raises(IllegalMove):
            await there.app.write(
                lambda tx: store.tasks.promote(tx, task["id"], wrong, "x", actor=WHO)
            )


def page_of(match: Match) -> MatchPage:
    return from_json(MatchPage, json.dumps(match.plain()))
