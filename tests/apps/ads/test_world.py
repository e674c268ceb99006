"""The whole of seed 004: orchestrators, workers, writer and proxies as processes of their own, and killed."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from retoma import Retoma, db
from retoma.apps.ads import APP, store
from retoma.apps.ads.model import MediaType
from retoma.apps.tools import Tools
from retoma.db import Database, adhoc, verbatim
from retoma.outbound import Outbound
from retoma.sandbox.ads import Library, Wanted
from retoma.secret import Secret
from tests.engine.aids import eventually
from tests.programs.logbooks import doubled, left
from tests.programs.processes import API_KEY, PATIENCE, Program, Programs, programs

SEED = 7
LAYOUTS = (("gallery", ()), ("archive", ("--no-keys",)))
WHO = "ana"
TABLE = """CREATE TABLE ads (id text PRIMARY KEY, title text, advertiser text, text text,
           language text, media_type text, url text, qtd_ads integer, date text)"""
LANGUAGES = ("pt", "en", "es", "fr")


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around the orchestrators."""

    programs: Programs
    folder: Path
    workers: tuple[Program, ...]
    proxies: tuple[Program, ...]
    writer: Program

    @property
    def logs(self) -> list[Path]:
        return [self.folder / layout / "worker.jsonl" for layout, _ in LAYOUTS]


@contextmanager
def around(folder: Path, target: str) -> Iterator[Around]:
    with programs(folder) as those:
        site = those.begin("sandbox", "ads", "--seed", str(SEED))
        proxies = tuple(those.proxy(name, "ana", "secret") for name in ("red", "blue", "green"))
        site.wait()
        workers = tuple(
            those.begin(
                *("worker-service", "--site", site.origin, "--adapter", layout),
                *("--data", str(folder / layout), "--watch", "0.2", *more),
            )
            for layout, more in LAYOUTS
        )
        for each in (*proxies, *workers):
            each.wait()
        own = ("--database", f"sqlite:///{folder / 'writer.db'}")
        sources = [word for each in workers for word in ("--source", each.origin)]
        profile = ("writer", "profiles", "add", "ads", "--target", "env:TARGET", *sources)
        subprocess.run(
            [sys.executable, "-m", "retoma", *profile, *own],
            env={**os.environ, "RETOMA_PRIVATE_HOSTS": "127.0.0.1", "TARGET": target},
            check=True,
            capture_output=True,
        )
        writer = those.start("writer-service", *own, TARGET=target)
        yield Around(those, folder, workers, proxies, writer)


@dataclass(frozen=True, slots=True)
class House:
    """The orchestrators' database, as a person sees it."""

    app: Retoma
    database: Database
    target: Database

    async def rows(self, sql: str) -> list[Any]:
        return await self.database.read(lambda tx: tx.all(adhoc(sql)))

    async def statuses(self) -> list[str]:
        return [each for (each,) in await self.rows("SELECT status FROM missions ORDER BY id")]

    async def at_rest(self) -> bool:
        """Every mission has ended, and every session; nothing is held."""
        ended = {"completed", "failed", "canceled"}
        open_ = await self.rows("SELECT count(*) FROM ads_sessions WHERE ended_at IS NULL")
        at_rest = set(await self.statuses()) <= ended and open_[0][0] == 0
        return at_rest and not await self.held()

    async def held(self) -> list[Any]:
        """What somebody holds; a proxy is let go of just after its session was seen to end."""
        return await self.rows(
            "SELECT i.name FROM pool_items i JOIN jobs j ON j.id = i.job"
            " WHERE i.scope = 'release' OR j.state IN ('waiting', 'running', 'parked')"
        )

    async def ads(self) -> dict[str, str]:
        found = await self.target.read(
            lambda tx: tx.for_caller(verbatim("SELECT id, title FROM ads"))
        )
        return dict(found[0])


@asynccontextmanager
async def house(url: str, world: Around, target: Database) -> AsyncIterator[House]:
    out = Outbound(private=frozenset({"127.0.0.1"}))
    async with Retoma(url) as app, out:
        tools = Tools(app, out, key_file=world.folder / "key")
        app.install(APP, tools)
        for knob in ("polling_session", "polling_job"):
            await app.knobs.set(f"ads.{knob}", 0.2)
        secrets = store.Secrets(await (await tools.vault()).sealer(), WHO)
        for program in world.workers:
            told = {"name": program.server, "url": program.origin, "api_key": Secret(API_KEY)}
            await app.write(
                lambda tx, told=told, at=program.server: store.add_worker(  # type: ignore[misc]
                    tx, secrets, storage_domain=at, **told
                )
            )
        for program in world.proxies:
            host, _, port = program.server.partition(":")
            login = {"username": "ana", "password": Secret("secret")}
            await app.write(
                lambda tx, host=host, port=port, login=login: store.add_proxy(  # type: ignore[misc]
                    tx, secrets, host=host, port=int(port), **login
                )
            )
        service = {"name": "w", "url": world.writer.origin, "api_key": Secret(API_KEY)}
        await app.write(lambda tx: store.add_writer(tx, secrets, **service))  # type: ignore[arg-type]
        yield House(app, await app.database(), target)


def orchestrator(url: str, folder: Path, name: str) -> "subprocess.Popen[bytes]":
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.apps.ads.run_orchestrator"),
                *(url, str(folder / "key"), name),
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )


async def add_missions(found: House, n: int) -> dict[str, str]:
    """So many days, each in one language; the ads there are."""
    wanted = [
        store.NewMission(
            date(2025, 3, 1 + each // 4),
            date(2025, 3, 1 + each // 4),
            MediaType.ALL,
            (LANGUAGES[each % 4],),
        )
        for each in range(n)
    ]
    ids = await found.app.write(lambda tx: store.add_missions(tx, wanted, actor=WHO))
    await found.app.write(lambda tx: store.queue_missions(tx, ids, actor=WHO))
    await found.app.write(lambda tx: store.start(tx, actor=WHO))
    library = Library(SEED)
    return {
        ad.id: ad.title
        for each in wanted
        for ad in library.find(
            Wanted(
                start=each.date_start, end=each.date_end, languages=frozenset(each.languages)
            )
        )
    }


async def until_rest(found: House) -> None:
    await eventually(found.at_rest, within=3 * PATIENCE)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("missions", "kills"),
    [
        (4, 2),
        pytest.param(40, 40, marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
    ],
)
async def test_m1_to_m10_whoever_is_killed_every_mission_ends_and_nothing_is_doubled(
    database_url, tmp_path, missions, kills
):
    chance = random.Random(SEED)
    target_url = f"sqlite:///{tmp_path / 'target.db'}"
    target = db.open(target_url)
    await target.write(lambda tx: tx.for_caller(verbatim(TABLE)), verb="test")
    with around(tmp_path, target_url) as world:
        async with house(database_url, world, target) as found:
            running = {
                name: orchestrator(database_url, tmp_path, name) for name in ("one", "two")
            }
            try:
                expected = await add_missions(found, missions)
                for _ in range(kills):
                    await asyncio.sleep(chance.uniform(0.3, 1.5))
                    name = chance.choice(["one", "two", "worker", "writer"])
                    if name in running:
                        running[name].send_signal(signal.SIGKILL)
                        running[name].wait()
                        running[name] = orchestrator(database_url, tmp_path, name)
                        continue
                    victim = world.writer if name == "writer" else chance.choice(world.workers)
                    victim.kill()
                    victim.start()
                await until_rest(found)

                assert {"completed"} == set(await found.statuses())
                assert expected == await found.ads()
                assert [] == doubled(world.logs)
                assert [] == left(world.logs)
            finally:
                for each in running.values():
                    each.kill()
                    each.wait()
    target.close()
