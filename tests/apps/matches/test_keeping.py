"""Matches that are stored in one transaction: each whole and once, however often and by whom it is said."""

from typing import Any

import pytest

from retoma.apps.matches import store
from retoma.apps.matches.store.rows import SQL
from retoma.apps.matches.store.tasks import Keeping, Stored
from retoma.db.rows import read_json
from retoma.engine.rules.errors import NotFound
from retoma.testing import crash_at
from tests.apps.matches.aids import PARTIAL, WHO, House, house, stored_as
from tests.apps.matches.test_rounds import found, page_of, refs

NOTICES = "SELECT count(*) FROM jobs WHERE kind = 'matches.complete'"


async def begun(there: House, number: int = 1) -> list[int]:
    """The tasks of a round that nobody is at work on, in the order of its matches."""
    run, _ = await there.start(number)
    await found(there, run, refs(there, number))
    tasks = await there.tasks(run)
    return [tasks[match.key]["id"] for match in there.truth(number)]


async def kept(there: House, tasks: dict[int, list[int]]) -> list[Stored]:
    """The matches of these rounds, for these tasks, all at once."""
    told = [
        (task, page_of(match))
        for number, these in tasks.items()
        for task, match in zip(these, there.truth(number) * 2, strict=False)
    ]

    def keep(tx: Any) -> list[Stored]:
        known = store.tasks.tasks_of(tx, [task for task, _ in told])
        return store.tasks.keep(tx, [Keeping(known[task], page, WHO) for task, page in told])

    return await there.app.write(keep)


async def test_what_is_said_again_changes_nothing_and_is_answered_the_same(database_url):
    """R2 R3: as after a commit whose answer was lost. Of two rounds each is complete, once."""
    async with house(database_url) as there:
        tasks = {1: await begun(there, 1), 2: await begun(there, 2)}
        first = await kept(there, tasks)
        stored = await there.matches()

        assert first == await kept(there, tasks)
        assert stored == await there.matches()
        assert {False} == {each.already for each in first}
        for number in tasks:
            assert {"DONE": 10} == await there.statuses(number)
            assert (await there.seen(number))["complete"]
            for match in there.truth(number):
                stored_as(match, stored[match.key])
        assert [(2,)] == await there.rows(NOTICES)
        assert [] == await there.rows(PARTIAL)


async def test_of_two_who_tell_of_the_same_match_at_once_one_stores_it(database_url):
    """R2 R6: two runs of a round. Both are told where it is, the second that it was there."""
    async with house(database_url) as there:
        first = await begun(there)
        await there.app.write(lambda tx: tx.run(SQL.end_run, run=1))
        second = await begun(there)

        made = await kept(there, {1: [*first, *second]})

        assert [False] * 10 + [True] * 10 == [each.already for each in made]
        assert [each.partida for each in made[:10]] == [each.partida for each in made[10:]]
        assert {"DONE": 10} == await there.statuses(1)
        assert {"SKIPPED": 10} == await there.statuses(2)
        assert 10 == len(await there.matches())
        assert [] == await there.rows(PARTIAL)


async def test_one_that_cannot_be_stored_leaves_nothing_of_those_beside_it(database_url):
    """R1: the engine tries them again by halves; here all of it is undone."""
    async with house(database_url) as there:
        tasks = await begun(there)
        scheduled = page_of(there.truth()[3]).model_copy(update={"score": None})

        def keep(tx: Any) -> list[Stored]:
            known = store.tasks.tasks_of(tx, tasks)
            pages = [page_of(match) for match in there.truth()]
            pages[3] = scheduled
            told = zip(tasks, pages, strict=True)
            return store.tasks.keep(
                tx, [Keeping(known[task], page, WHO) for task, page in told]
            )

        with pytest.raises(ValueError, match="only a match that is over"):
            await there.app.write(keep)
        assert {} == await there.matches()


async def test_who_hears_nothing_of_his_commit_has_stored_it_all_the_same(database_url):
    """R2: nobody takes what he has stored himself for another's, and it costs no attempt."""
    async with house(database_url) as there:
        with crash_at("share.after_commit", "reply_lost"):
            run = await there.scraped()

        tasks, stored = await there.tasks(run), await there.matches()
        assert {("DONE", 1)} == {(each["status"], each["attempts"]) for each in tasks.values()}
        for match in there.truth():
            task = tasks[match.key]
            stored_as(match, stored[match.key])
            told = {"partida": task["partida_id"], "already": False}
            assert told == read_json((await there.app.get(task["job"])).result)
        assert [(1,)] == await there.rows(NOTICES)
        assert [] == await there.rows(PARTIAL)


async def test_what_stores_a_match_is_no_step(database_url):
    """Its rows tell that it was done."""
    async with house(database_url) as there:
        run = await there.scraped()

        jobs = {each["job"] for each in (await there.tasks(run)).values()}
        assert 10 == len(jobs)
        assert [[]] * 10 == [await there.app.steps(job) for job in jobs]


async def test_a_task_that_is_not_there_is_nobody_elses_failure(database_url):
    async with house(database_url) as there:
        [first, *_] = await begun(there)
        database = await there.app.database()

        known = await database.read(lambda tx: store.tasks.tasks_of(tx, [first, 999]))
        assert [first] == [*known]
        with pytest.raises(NotFound):
            await database.read(lambda tx: store.tasks.task_of(tx, 999))
