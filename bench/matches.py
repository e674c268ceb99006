"""Matches, from a site that answers at once: how many a second, beside a bare script that scrapes the same rounds.

The script is what the document would write: httpx2, selectolax, `executemany`, a commit for each match. It reads by
the same parsers and stores the same rows; it has no tasks, no leases, no evidence, and nobody to take over. The
site has every page drawn beforehand, in a process of its own.
"""

import asyncio
import contextlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from time import perf_counter
from typing import IO, Any, cast

from bench import ours
from bench.child import ROOT, Failed, call
from bench.compare import Figures, Measure
from bench.ours import Address
from bench.places import Places

HERE = "bench.matches"
LIMIT = 300.0  # seconds
SEED = 1
LEAGUE = "brasileirao"
SEASON = 2026
MATCHES = 10  # of a round
SLOTS = 32
AT_ONCE = 10  # connections to the site, as many as a runner has
WARM = 2  # rounds that are scraped before anything is measured
LOOK = 0.05
LISTENS = re.compile(r"listens on (\d+)")
TABLES = (
    "CREATE TABLE games (id {id} PRIMARY KEY, round int, home text, away text, kickoff text, stadium text,"
    " home_score int, away_score int, lineups text, url text)",
    "CREATE UNIQUE INDEX games_match ON games (round, home, away)",
    "CREATE TABLE teams (key text PRIMARY KEY)",
    "CREATE TABLE game_events (game int, n int, minute int, added int, side text, kind text, player text,"
    " other text, PRIMARY KEY (game, n))",
    "CREATE TABLE game_statistics (game int, name text, home int, away int, PRIMARY KEY (game, name))",
)
TOLD = "SELECT count(*) FROM jobs WHERE kind = 'matches.complete' AND state = 'done'"
LAST_JOB = "SELECT max(id) FROM jobs"
SPAN = (
    "SELECT max(at) - min(at) FROM events WHERE type IN ('claimed', 'done') AND job > :before"
)
ADD_GAME = (
    "INSERT INTO games (round, home, away, kickoff, stadium, home_score, away_score, lineups, url)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
)
ADD_TEAM = "INSERT INTO teams VALUES (?) ON CONFLICT DO NOTHING"
ADD_EVENT = "INSERT INTO game_events VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
ADD_STATISTIC = "INSERT INTO game_statistics VALUES (?, ?, ?, ?)"


# — in the parent —


def in_house(address: Address, rounds: int) -> Measure:
    """Matches a second from the first claim to the last notice that a round is complete, by the database's
    own clock, as `bench.span` does it; CPU of the runner."""
    return _measured("scrape", address, rounds)


def by_script(make: str, rounds: int) -> Measure:
    """The same rounds by the script."""
    return _measured("script", FLOORS[make], rounds)


FLOORS: Mapping[str, Address] = {
    "postgres": lambda places: places.postgres("floor"),
    "sqlite": lambda places: f"sqlite:///{places.file('floor')}",
}


def _measured(how: str, address: Address, rounds: int) -> Measure:
    def measure(places: Places) -> Figures:
        with site() as port:
            made = call(
                f"{HERE}:{how}", limit=LIMIT, url=address(places), port=port, rounds=rounds
            )
        matches = rounds * MATCHES
        return matches / made["seconds"], made["cpu"] * 1000 / matches

    return measure


@contextlib.contextmanager
def site() -> Iterator[int]:
    """For as long as the block lasts; its port."""
    command = [sys.executable, "-m", HERE]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
        try:
            found = LISTENS.search(cast("IO[str]", program.stdout).readline())
            if found is None:
                raise Failed("the site did not start")
            yield int(found[1])
        finally:
            program.kill()


# — the site, in a process of its own —


async def _drawn() -> dict[bytes, bytes]:
    """Every answer of the league, ready to be sent, by its path."""
    import httpx2

    from retoma.apps.matches.sandbox import Season
    from retoma.apps.matches.sandbox.site import World, build_pages

    world = World(Season(SEED, unfinished=0.0))
    rounds = range(1, world.season.leagues[LEAGUE].rounds + 1)
    paths = [f"/{LEAGUE}/{SEASON}/rodada/{number}" for number in rounds]
    paths += [each.path for number in rounds for each in world.season.round(LEAGUE, number)]
    transport = httpx2.ASGITransport(build_pages(world))
    answers = {}
    async with httpx2.AsyncClient(transport=transport, base_url="http://site") as client:
        for path in paths:
            page = (await client.get(path)).content
            head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(page)}\r\n\r\n"
            answers[path.encode()] = head.encode() + page
    return answers


class Instant(asyncio.Protocol):
    """A connection over which pages are asked for, one after the other."""

    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self._answers = answers
        self._heard = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *asked, self._heard = (self._heard + data).split(b"\r\n\r\n")
        for each in asked:
            self._transport.write(self._answers[each.split(b" ", 2)[1]])


async def _serve() -> None:
    answers = await _drawn()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Instant(answers), "127.0.0.1", 0)
    print(f"listens on {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


# — ours, in a process of its own —


def scrape(url: str, port: int, rounds: int) -> dict[str, float]:
    return ours.run(_scrape(url, port, rounds))


async def _scrape(url: str, port: int, rounds: int) -> dict[str, float]:
    from retoma import Retoma, logs
    from retoma.apps.matches import APP, store
    from retoma.apps.matches.store.rows import Round
    from retoma.outbound import Outbound
    from retoma.settings import Settings
    from retoma.toolkit.tools import Tools

    logs.configure("INFO")  # a line for each match, as a runner writes it
    settings = Settings(database_url=url, matches_url=f"http://127.0.0.1:{port}")
    out = Outbound(private=frozenset({"127.0.0.1"}))

    async def begin(numbers: range) -> None:
        def start(tx: Any) -> None:
            for number in numbers:
                store.runs.start(tx, Round(LEAGUE, SEASON, number), actor="bench")

        await app.write(start)

    async with Retoma(url) as app, out:
        app.install(APP, Tools(app, out, settings=settings))
        run = asyncio.create_task(app.run(slots=SLOTS))
        await begin(range(1, WARM + 1))
        await _until_complete(app, WARM)
        before, cpu = await _asked(app, LAST_JOB), _cpu()
        await begin(range(WARM + 1, WARM + rounds + 1))
        await _until_complete(app, WARM + rounds)
        used, took = _cpu() - cpu, await _asked(app, SPAN, before=before)
        app.stop()
        await run
    seconds = took.total_seconds() if isinstance(took, timedelta) else took / 1e6
    return {"seconds": seconds, "cpu": used}


async def _until_complete(app: Any, rounds: int) -> None:
    while await _asked(app, TOLD) < rounds:  # noqa: ASYNC110
        await asyncio.sleep(LOOK)


async def _asked(app: Any, sql: str, **params: Any) -> Any:
    from retoma.db import adhoc

    database = await app.database()
    [(told,)] = await database.read(lambda tx: tx.all(adhoc(sql), **params))
    return told


# — the bare script, in a process of its own —


def script(url: str, port: int, rounds: int) -> dict[str, float]:
    with _opened(url) as store:
        return ours.run(_script(store, f"http://127.0.0.1:{port}", rounds))


async def _script(store: Callable[[Any], None], origin: str, rounds: int) -> dict[str, float]:
    import httpx2

    from retoma.apps.matches.clients.parsers import parse_match, parse_round
    from retoma.apps.matches.model import Wanted
    from retoma.apps.matches.sites import site_of

    site_ = site_of(LEAGUE).at(origin)
    limits = httpx2.Limits(max_connections=AT_ONCE)
    async with httpx2.AsyncClient(limits=limits, timeout=LIMIT, trust_env=False) as client:

        async def one_match(ref: Any, number: int) -> None:
            answer = (await client.get(ref.url)).raise_for_status()
            wanted = Wanted(season=SEASON, round=number, key=ref.key)
            store(parse_match(site_, answer.content, wanted=wanted))

        async def one_round(number: int) -> None:
            answer = (await client.get(site_.round_url(SEASON, number))).raise_for_status()
            page = parse_round(site_, answer.content, season=SEASON, round_=number)
            await asyncio.gather(*(one_match(ref, number) for ref in page.matches))

        await asyncio.gather(*map(one_round, range(1, WARM + 1)))
        began, cpu = perf_counter(), _cpu()
        await asyncio.gather(*map(one_round, range(WARM + 1, WARM + rounds + 1)))
        return {"seconds": perf_counter() - began, "cpu": _cpu() - cpu}


@contextlib.contextmanager
def _opened(url: str) -> Iterator[Callable[[Any], None]]:
    """What stores one match, in a transaction of its own."""
    if url.startswith("sqlite:"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")  # as ours
            yield _storing(database, lambda sql: sql, "integer")
    else:
        import psycopg

        with psycopg.connect(url) as connection:
            yield _storing(
                connection,
                lambda sql: sql.replace("?", "%s"),
                "bigint GENERATED BY DEFAULT AS IDENTITY",
            )


def _storing(database: Any, spelled: Callable[[str], str], id_: str) -> Callable[[Any], None]:
    for each in TABLES:
        database.execute(each.format(id=id_))
    database.commit()
    add_team, add_game, add_event, add_statistic = map(
        spelled, (ADD_TEAM, ADD_GAME, ADD_EVENT, ADD_STATISTIC)
    )

    def store(page: Any) -> None:
        cursor = database.cursor()
        cursor.executemany(add_team, [(page.home,), (page.away,)])
        told = (page.round, page.home, page.away, str(page.kickoff), page.stadium)
        score = (page.score.home, page.score.away)
        lineups = page.lineups.model_dump_json()
        [game] = cursor.execute(add_game, (*told, *score, lineups, page.key)).fetchone()
        events = page.model_dump(mode="json")["events"]
        names = ("minute", "added", "side", "kind", "player", "other")
        rows = [(game, n, *map(each.get, names)) for n, each in enumerate(events)]
        cursor.executemany(add_event, rows)
        counted = page.statistics.model_dump().items()
        cursor.executemany(
            add_statistic, [(game, name, each["home"], each["away"]) for name, each in counted]
        )
        database.commit()

    return store


def _cpu() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    ours.run(_serve())
