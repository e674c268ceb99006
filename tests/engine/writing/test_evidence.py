"""What jobs show: kept once, capped, found again wherever it lies, and never a row without its bytes."""

import asyncio
import hashlib
import logging
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from retoma import BadInput, Context, NotFound, Permanent, Retoma, State
from retoma.db import Database, Full
from retoma.engine import store
from retoma.engine.rules.job import Held
from retoma.engine.store import Evidence
from retoma.engine.testing import drain
from retoma.engine.writing.evidence import Keeper, ShelfAway
from tests.engine.aids import boot, change, claim, rows, submit
from tests.s3 import ACCESS, SECRET, serving

DAY = 24 * 3600
PAGE = b"<p>sold out</p>" * 100
NOISE = hashlib.shake_256(b"noise").digest(5_000)
WITHOUT_BYTES = """
    SELECT s.sha256 FROM job_evidence s LEFT JOIN evidence e ON e.sha256 = s.sha256
    WHERE e.sha256 IS NULL OR e.bytes IS NULL AND e.stored_at IS NULL"""


class Shelf:
    """In memory, with a hook before each put."""

    base = "test://shelf/"

    def __init__(self) -> None:
        self.places: dict[str, bytes] = {}
        self.puts: list[str] = []

    async def before_put(self) -> None:
        """For a test to meddle."""

    async def put(self, place: str, data: bytes, _: datetime) -> None:
        self.puts.append(place)
        await self.before_put()
        self.places[place] = data

    async def get(self, place: str, _: datetime) -> bytes | None:
        return self.places.get(place)

    async def remove(self, place: str, _: datetime) -> None:
        self.places.pop(place, None)

    async def close(self) -> None:
        pass


async def held_job(app: Retoma, n: int = 1) -> tuple[Database, str, list[Held]]:
    database = await app.database()
    await submit(database, n)
    me = await boot(database)
    return database, me, [each.held for each in await claim(database, me, slots=n)]


def page(content: bytes = PAGE, name: str = "page.html") -> Evidence:
    return Evidence(name, "text/html", content)


async def shown(app: Retoma, job: int) -> list[tuple[str, int, int | None]]:
    return [(each.name, each.size, each.cut_from) for each in await app.evidence.list(job)]


# --- where it lies


@contextmanager
def place_for(where: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An address to keep evidence at, and how to count what lies there."""
    if where == "database":
        yield "database", lambda: 0
    elif where == "folder":
        folder = tmp_path / "shelf"
        yield (
            f"folder://{folder}",
            lambda: sum(path.is_file() for path in folder.rglob("*")),
        )
    else:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        with serving() as server:
            yield f"s3://evidence/a?endpoint={server.endpoint}", lambda: len(server.objects)


@pytest.mark.parametrize("where", ["database", "folder", "s3"])
async def test_evidence_lies_where_the_setting_says_and_is_found_again(
    database_url, tmp_path, monkeypatch, caplog, where
):
    caplog.set_level(logging.DEBUG)
    with place_for(where, tmp_path, monkeypatch) as (address, lying):
        monkeypatch.setenv("RETOMA_EVIDENCE", address)
        async with Retoma(database_url) as app:

            @app.job
            async def read(ctx: Context, n: int) -> None:
                await ctx.attach("page.html", PAGE)
                await ctx.attach("shot.png", NOISE + bytes([n]))
                raise Permanent("sold out")

            batch = await app.submit_many(read, range(2))
            await drain(app)

            [one, two] = [job.id for job in await app.jobs(batch=batch.id)]
            seen = await app.evidence.list(one)
            assert [
                ("page.html", "text/html", len(PAGE)),
                ("shot.png", "image/png", 5_001),
            ] == [(each.name, each.media, each.size) for each in seen]
            contents = [await app.evidence.read(each.sha256) for each in seen]
            assert [PAGE, 5_001] == [contents[0], len(contents[1])]
            assert seen[0].sha256 == (await app.evidence.list(two))[0].sha256
            outside = where != "database"
            assert 3 * outside == lying()
            inside = "SELECT bytes IS NULL, place IS NULL FROM evidence"
            assert [(outside, not outside)] * 3 == [
                tuple(map(bool, row)) for row in await rows(await app.database(), inside)
            ]
            # In the database too what is squeezed is small, and what cannot be is left as it is.
            codecs = await rows(
                await app.database(), "SELECT codec FROM evidence ORDER BY size"
            )
            assert [("zlib",), ("plain",), ("plain",)] == codecs
            everything = await rows(await app.database(), "SELECT place FROM evidence")
            assert SECRET not in f"{everything} {caplog.text}"


async def test_evidence_nobody_has_is_not_found(database_url):
    async with Retoma(database_url) as app:
        with pytest.raises(NotFound, match="there is no evidence 00"):
            await app.evidence.read("00" * 32)
        with pytest.raises(BadInput, match="asked for by its sha256"):
            await app.evidence.read("../../etc/passwd")
        with pytest.raises(NotFound, match="there is no job 7"):
            await app.evidence.list(7)


async def test_bytes_that_are_gone_or_changed_on_their_shelf_are_not_passed_off(database_url):
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)
        shelf = Shelf()
        keeper = Keeper(shelf)
        await keeper.attach(database, me, held, page())
        [seen] = await app.evidence.list(held.job)
        [place] = shelf.places

        shelf.places[place] = store.pack(page(b"forged")).data
        with pytest.raises(NotFound, match="is something else"):
            await keeper.get(database, seen.sha256)
        shelf.places.clear()
        with pytest.raises(NotFound, match="no longer at test://shelf/"):
            await keeper.get(database, seen.sha256)
        with pytest.raises(ShelfAway, match="not on the shelf of this process"):
            await app.evidence.read(seen.sha256)


# --- caps


async def test_a_piece_too_long_is_cut_and_says_so(database_url, monkeypatch):
    monkeypatch.setattr(store.evidence, "PIECE", 1_000)
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)

        assert await Keeper().attach(database, me, held, page(NOISE))
        assert await Keeper().attach(database, me, held, page(b"", "empty"))

        assert [("page.html", 1_000, 5_000), ("empty", 0, None)] == await shown(app, held.job)
        [seen, _] = await app.evidence.list(held.job)
        assert NOISE[:1_000] == await app.evidence.read(seen.sha256)
        told = [e.details for e in await app.events(held.job) if e.type == "evidence"]
        assert told[0]["note"].startswith("cut to 1,000 of 5,000 bytes")
        assert "note" not in told[1]


@pytest.mark.parametrize("outside", [False, True])
async def test_a_job_shows_so_much_and_no_more(database_url, monkeypatch, outside):
    monkeypatch.setattr(store.evidence, "JOB", 8_000)
    async with Retoma(database_url) as app:
        database, me, [held, other] = await held_job(app, 2)
        keeper = Keeper(Shelf() if outside else None)

        for n in range(4):
            assert await keeper.attach(database, me, held, page(NOISE + bytes([n]), f"p{n}"))
        assert await keeper.attach(
            database, me, held, page(NOISE, "p0")
        )  # in place of the first
        assert await keeper.attach(database, me, other, page(NOISE))

        assert 8_000 == sum(size for _, size, _ in await shown(app, held.job)) + 1
        assert [("p1", 2_999, 5_001), ("p0", 5_000, None)] == await shown(app, held.job)
        assert [("page.html", 5_000, None)] == await shown(app, other.job)
        notes = [
            e.details.get("note") for e in await app.events(held.job) if e.type == "evidence"
        ]
        assert [None, "cut to", "not kept", "not kept", None] == [
            note and " ".join(note.split(":")[0].split()[:2]) for note in notes
        ]


async def test_pieces_attached_at_once_do_not_pass_the_cap_together(database_url, monkeypatch):
    monkeypatch.setattr(store.evidence, "JOB", 12_000)
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)
        keeper = Keeper(Shelf())
        pieces = [page(NOISE + bytes([n]), f"p{n}") for n in range(8)]

        await asyncio.gather(*[keeper.attach(database, me, held, each) for each in pieces])

        assert 12_000 >= sum(size for _, size, _ in await shown(app, held.job))
        assert 8 == sum(event.type == "evidence" for event in await app.events(held.job))


# --- intent, bytes, row


async def test_a_stale_runner_keeps_nothing_anywhere(database_url):
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)
        shelf = Shelf()
        stale = Held(held.job, held.epoch - 1)

        assert not await Keeper(shelf).attach(database, me, stale, page())
        assert not await Keeper().attach(database, me, stale, page())
        await change(database, "UPDATE runners SET state = 'lost'")
        assert not await Keeper(shelf).attach(database, me, held, page())

        assert ([], {}) == (await rows(database, "SELECT sha256 FROM evidence"), shelf.places)


async def test_a_row_never_points_at_bytes_that_are_not_there(database_url):
    """Whoever dies before, while or after putting them leaves an intent, not evidence."""
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)
        shelf = Shelf()

        async def die() -> None:
            assert [] == await app.evidence.list(held.job)
            raise KeyboardInterrupt

        shelf.before_put = die  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            await Keeper(shelf).attach(database, me, held, page())

        assert [] == await app.evidence.list(held.job)
        [intent] = await rows(database, "SELECT place, stored_at, bytes FROM evidence")
        assert (shelf.puts[0], None, None) == intent
        with pytest.raises(NotFound):
            await Keeper(shelf).get(database, hashlib.sha256(PAGE).hexdigest())
        # The next one to attach the same bytes takes up the same intent.
        shelf.before_put = Shelf().before_put  # type: ignore[method-assign]
        assert await Keeper(shelf).attach(database, me, held, page())
        assert shelf.puts[0] == shelf.puts[1]
        assert [] == await rows(database, WITHOUT_BYTES)


async def test_a_shelf_that_is_away_harms_nobody(database_url):
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)
        shelf = Shelf()

        async def away() -> None:
            raise ShelfAway("the cable is out")

        shelf.before_put = away  # type: ignore[method-assign]
        keeper = Keeper(shelf)
        assert await keeper.attach(database, me, held, page())

        [seen] = await app.evidence.list(held.job)
        assert PAGE == await app.evidence.read(seen.sha256)
        # What was perhaps put there after all is not forgotten.
        assert [(shelf.puts[0],)] == await rows(database, "SELECT place FROM places_left")


async def test_retention_that_takes_an_intent_for_forgotten_costs_one_more_try(database_url):
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)
        shelf = Shelf()

        async def retire() -> None:
            if len(shelf.puts) == 1:
                await change(database, "DELETE FROM evidence")

        shelf.before_put = retire  # type: ignore[method-assign]
        keeper = Keeper(shelf)
        assert await keeper.attach(database, me, held, page())

        assert 2 == len(set(shelf.puts))
        [seen] = await app.evidence.list(held.job)
        assert PAGE == await keeper.get(database, seen.sha256)


async def test_a_full_database_is_waited_for_by_the_attempt(database_url):
    """The keeper lets it pass: what to do about it the attempt knows."""
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)

        async def full(*_: Any, **__: Any) -> Any:
            raise Full("no room")

        broken: Any = type("Broken", (), {"write": staticmethod(full), "read": database.read})
        with pytest.raises(Full):
            await Keeper(Shelf()).attach(broken, me, held, page())


# --- collecting


async def test_e20_what_a_job_shows_is_never_collected(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)
        shelf = Shelf()
        keeper = Keeper(shelf)
        await keeper.attach(database, me, held, page())
        test_clock.jump(400 * DAY)

        assert 0 == await keeper.collect(database)

        [seen] = await app.evidence.list(held.job)
        assert PAGE == await keeper.get(database, seen.sha256)


async def test_e20_what_nobody_shows_is_collected_after_a_day_and_its_place_emptied(
    database_url, test_clock, monkeypatch
):
    monkeypatch.setattr(store.evidence, "PAGE", 3)
    async with Retoma(database_url) as app:
        database, me, [held, gone] = await held_job(app, 2)
        shelf = Shelf()
        keeper = Keeper(shelf)
        await keeper.attach(database, me, held, page(b"kept"))
        for n in range(7):
            await keeper.attach(database, me, gone, page(f"lost {n}".encode(), f"p{n}"))
        await Keeper().attach(database, me, gone, page(b"lost inside", "inside"))
        await change(database, f"DELETE FROM job_evidence WHERE job = {gone.job}")  # noqa: S608

        early = await keeper.collect(database)
        test_clock.jump(DAY + 1)
        dropped = await keeper.collect(database)
        left = len(shelf.places)
        test_clock.jump(3601)
        again = await keeper.collect(database)

        assert (0, 8, 8, 0) == (early, dropped, left, again)
        assert [(1,)] == await rows(database, "SELECT count(*) FROM evidence")
        assert [] == await rows(database, "SELECT place FROM places_left")
        assert [store.pack(page(b"kept")).data] == list(shelf.places.values())


async def test_a_shelf_that_is_away_is_emptied_another_time(database_url, test_clock):
    async with Retoma(database_url) as app:
        database, me, [held] = await held_job(app)
        shelf = Shelf()
        keeper = Keeper(shelf)
        await keeper.attach(database, me, held, page())
        await change(database, "DELETE FROM job_evidence")
        test_clock.jump(DAY + 1)
        await keeper.collect(database)
        test_clock.jump(DAY)
        removing = shelf.remove

        async def away(place: str, _: datetime) -> None:
            raise ShelfAway("the cable is out")

        shelf.remove = away  # type: ignore[method-assign]
        await keeper.collect(database)
        assert 1 == len(shelf.places)
        shelf.remove = removing  # type: ignore[method-assign]
        await keeper.collect(database)

        assert ({}, []) == (shelf.places, await rows(database, "SELECT place FROM places_left"))


async def test_e20_retention_takes_the_evidence_of_the_jobs_it_deletes(
    database_url, test_clock, tmp_path
):
    """The row goes with the last job that shows it, its file an hour later."""
    async with Retoma(database_url, evidence=f"folder://{tmp_path}/shelf") as app:

        @app.job
        async def read(ctx: Context, n: int) -> None:
            await ctx.attach("page.html", PAGE)

        job = await app.submit(read, 1)
        await drain(app)
        assert State.DONE is (await app.get(job.id)).state
        test_clock.jump(10 * DAY)

        await app.retention.run_once(done=DAY)
        left = [path for path in (tmp_path / "shelf").rglob("*") if path.is_file()]
        test_clock.jump(3601)
        await app.retention.run_once(done=DAY)

        assert 1 == len(left)
        assert not left[0].exists()
        assert [] == await rows(await app.database(), "SELECT sha256 FROM evidence")
