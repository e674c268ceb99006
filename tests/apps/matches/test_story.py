"""The document's sequence, branch by branch: found, skipped, stored whole, tried again, left for a person."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from retoma.apps.matches import store
from retoma.apps.matches.sandbox import Odd
from retoma.apps.matches.sandbox.season import LAST_STEP
from retoma.apps.matches.store.runs import watch
from retoma.apps.matches.store.tasks import Keeping
from retoma.db import adhoc
from retoma.engine.ports import Clock
from tests.apps.matches.aids import LEAGUE, PARTIAL, House, Watched, house, stored_as
from tests.engine.aids import eventually, running

# What is wrong with a page, the code of its end, and where the schema or the layout says it.
ENDS = {
    Odd.SCORE_100: ("SCHEMA_INVALID", "score.home"),
    Odd.UNEQUAL: ("SCHEMA_INVALID", "score"),
    Odd.LATE: ("SCHEMA_INVALID", "events"),
    Odd.OTHER: ("SCHEMA_INVALID", "key"),
    Odd.ALIEN: ("LAYOUT_CHANGED", ""),
    Odd.DEEP: ("SCHEMA_INVALID", "page"),
    Odd.HUGE: ("too_large", ""),
    Odd.UNORDERED: (None, ""),
    Odd.HOSTILE: (None, ""),
}

LEFT = adhoc("SELECT id FROM partidas WHERE home || '-x-' || away = :key")


async def test_a_round_is_stored_whole_and_once(database_url):
    """R1 R2 R3 R6 H-40: one look at the round, one at each match; a second run skips them all."""
    async with house(database_url) as there:
        run = await there.scraped()

        told = await there.seen(run)
        assert ("DONE", True, 10, 10) == (
            told["status"],
            told["complete"],
            told["expected"],
            told["stored"],
        )
        assert {"DONE": 10} == await there.statuses(run)
        stored = await there.matches()
        for match in there.truth():
            stored_as(match, stored[match.key])
        assert {1} == set(there.asked().values())
        assert 11 == there.asked().total()
        assert [("done", 1)] == await there.rows(
            "SELECT state, count(*) FROM jobs WHERE kind = 'matches.complete' GROUP BY state"
        )

        again = await there.scraped()
        assert again != run
        assert {"SKIPPED": 10} == await there.statuses(again)
        assert (await there.seen(again))["complete"]
        assert 12 == there.asked().total()
        assert stored == await there.matches()
        assert [] == await there.rows(PARTIAL)


async def test_what_cannot_be_read_is_left_for_a_person_with_its_evidence(database_url):
    """R3 R4 H-44: nothing of it is stored, its neighbours are; mended, one retry brings the rest."""
    async with house(database_url) as there:
        odd = list(zip(there.truth(), ENDS, strict=False))
        for match, how in odd:
            there.site.world.make_odd(LEAGUE, match.key, how)
        run = await there.scraped()

        tasks, stored = await there.tasks(run), await there.matches()
        for match, how in odd:
            code, path = ENDS[how]
            task = tasks[match.key]
            if code is None:
                assert "DONE" == task["status"], how
                stored_as(match, stored[match.key])
                continue
            assert ("FAILED", code, 1) == (
                task["status"],
                task["error_code"],
                task["attempts"],
            ), how
            assert match.key not in stored
            assert str(task["error"].get("path", "")).startswith(path), how
            if code != "too_large":
                assert (200, "text/html; charset=utf-8") == (
                    task["error"]["status"],
                    task["error"]["headers"]["content-type"],
                )
                assert await there.app.evidence.read(task["snapshot"])
        told = await there.seen(run)
        assert ("FAILED", False) == (told["status"], told["complete"])
        alerts = await (await there.app.database()).read(watch)
        assert f"SchemaInvalid {LEAGUE} score" in alerts
        assert any(each.startswith(f"LayoutChanged {LEAGUE} ") for each in alerts)

        for match, _ in odd:
            there.site.world.make_odd(LEAGUE, match.key, None)
        before = there.asked().total()
        tried = await there.app.write(
            lambda tx: store.runs.retry_failed(tx, league=LEAGUE, actor="ana")
        )
        twice = await there.app.write(
            lambda tx: store.runs.retry_failed(tx, league=LEAGUE, actor="ana")
        )
        await there.drained()
        assert (7, []) == (len(tried), twice)
        assert 7 == there.asked().total() - before
        assert (await there.seen(run))["complete"]
        assert {} == await (await there.app.database()).read(watch)
        assert [] == await there.rows(PARTIAL)


async def test_a_hiccup_costs_no_attempt_and_an_outage_three(database_url):
    """Two refusals are waited out within a call; what is still refused after three attempts is FAILED
    with status and headers, and a site that refuses us (403) is asked once."""
    async with house(database_url) as there:
        first, second, third, *_ = there.truth()
        there.ill(first.path, 503, times=2)
        there.ill(second.path, 500)
        there.ill(third.path, 403)
        run = await there.scraped()

        tasks, asked = await there.tasks(run), there.asked()
        assert ("DONE", 3) == (tasks[first.key]["status"], asked[first.path])
        assert ("FAILED", "transient", 3, 9) == (
            tasks[second.key]["status"],
            tasks[second.key]["error_code"],
            tasks[second.key]["attempts"],
            asked[second.path],
        )
        assert (500, 3) == tuple(
            tasks[second.key]["error"][name] for name in ("status", "attempt")
        )
        assert ("FAILED", "SITE_REFUSED", 1) == (
            tasks[third.key]["status"],
            tasks[third.key]["error_code"],
            asked[third.path],
        )
        assert {"DONE": 8, "FAILED": 2} == await there.statuses(run)


async def test_what_is_not_over_is_looked_at_again_at_a_stated_time(database_url, test_clock):
    """H-43: unpublished, scheduled, live and postponed matches are NOT_YET, and cost no attempt."""
    async with house(database_url, unfinished=1.0, clock=Clock()) as there:
        run, _ = await there.start()
        async with running(there.app):
            await eventually(lambda: all_are(there, run, "NOT_YET"))

        tasks = await there.tasks(run)
        assert {0} == {each["attempts"] for each in tasks.values()}
        assert all(each["look_again_at"] for each in tasks.values())
        assert {"live", "scheduled", "postponed", "NOT_PUBLISHED"} == {
            each["not_yet"] for each in tasks.values()
        }
        told = await there.seen(run)
        assert ("NOT_YET", False) == (told["status"], told["complete"])
        assert {} == await there.matches()
        assert (run, False) == await there.start()

        there.site.world.step = LAST_STEP
        test_clock.jump(8 * 86_400)
        async with running(there.app):
            await eventually(lambda: all_are(there, run, "DONE"))
        assert (await there.seen(run))["complete"]


async def all_are(there: House, run: int, status: str) -> bool:
    return await there.statuses(run) == {status: 10}


async def test_a_crash_after_any_insert_leaves_no_partial_match(database_url, monkeypatch):
    """R1 H-39: each match fails once, after another statement; all of it is there later, or none."""
    crashing = Crashing()
    monkeypatch.setattr(store.tasks, "keep", crashing)
    async with house(database_url) as there:
        run = await there.scraped()

        assert {10} == {len(crashing.left)}
        assert list(crashing.left.values()) == [[]] * 10
        assert (await there.seen(run))["complete"]
        assert [] == await there.rows(PARTIAL)
        stored = await there.matches()
        for match in there.truth():
            stored_as(match, stored[match.key])
        assert {2} == {each["attempts"] for each in (await there.tasks(run)).values()}


async def test_what_nobody_has_thought_of_is_told_of_too(database_url, monkeypatch):
    """R4: FAILED says why, whatever it was."""

    def broken(*_: Any) -> list[store.tasks.Stored]:
        raise ZeroDivisionError

    monkeypatch.setattr(store.tasks, "keep", broken)
    async with house(database_url) as there:
        tasks = await there.tasks(await there.scraped())

        assert {("FAILED", "exception", "exception", 3)} == {
            (each["status"], each["error_code"], each["error"]["code"], each["attempts"])
            for each in tasks.values()
        }
        assert {} == await there.matches()


async def test_who_dies_without_a_word_is_told_of_all_the_same(database_url):
    """R4: its story never came to say what it was, or has said something else at an earlier try."""
    async with house(database_url) as there:
        first, second, *_ = there.truth()
        there.ill(first.path, 403)
        there.ill(second.path, 403)
        run = await there.scraped()
        tasks = await there.tasks(run)
        for match, said in ((first, None), (second, '{"code":"transient"}')):
            task = tasks[match.key]["id"]
            note = partial(store.tasks.note, not_yet=None, error=said, snapshot=None)
            await there.app.write(partial(note, task=task))

        tasks = await there.tasks(run)
        told = {"code": "SITE_REFUSED", "reason": "permanent"}
        assert [told, told] == [tasks[each.key]["error"] for each in (first, second)]


class Crashing:
    """Fails the first time for each task, after one statement more each; then says what was left of it.

    Whoever comes with others fails with them before, and so is tried alone."""

    def __init__(self) -> None:
        self._keep = store.tasks.keep
        self._met: list[int] = []
        self.left: dict[int, list[Any]] = {}

    def __call__(self, tx: Any, made: Sequence[Keeping]) -> list[store.tasks.Stored]:
        new = [each.task.id for each in made if each.task.id not in self._met]
        if new and len(made) > 1:
            raise RuntimeError(f"one of {len(made)}")
        if new:
            self._met += new
            stored = self._keep(counting(tx, len(self._met)), made)
            raise RuntimeError(f"after all of it: {stored}")
        for each in made:
            key = each.task.key
            self.left[each.task.id] = tx.all(LEFT, key=key)
        return self._keep(tx, made)


def counting(tx: Any, most: int) -> Any:
    """A transaction that fails after so many statements."""
    left = iter(range(most))

    def fail_or_not() -> None:
        if next(left, None) is None:
            raise RuntimeError("the machine is gone")

    return Watched(tx, fail_or_not, lambda: None)
