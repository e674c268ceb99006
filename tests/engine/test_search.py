"""Jobs are found by whatever a person knows of them, and nobody walks through all of history."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from retoma import Context, Permanent, Retoma, Retry
from retoma.engine import query, store
from retoma.engine.query import AuditSearch, Count, Search
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.states import State
from retoma.engine.store import Verb
from tests.engine.aids import change
from tests.engine.test_insights import ANALYZE, plan_of

AT_ONCE = Retry(attempts=1, base=0, cap=0)


def shop(url: str) -> Retoma:
    """Stories that end as their payload says."""
    app = Retoma(url)

    @app.job(retry=AT_ONCE)
    async def quote(ctx: Context, wanted: dict[str, str]) -> None:
        await ctx.step("looked", noop)
        if "dies" in wanted:
            raise Permanent(wanted["dies"], code=wanted.get("code", "SHOP"))

    @app.job
    async def other(ctx: Context, wanted: dict[str, str]) -> None: ...

    return app


async def noop() -> None: ...


async def ids(app: Retoma, **wanted: object) -> list[int]:
    page = await app.search(Search(**wanted))  # type: ignore[arg-type]
    assert page.next is None
    return [job.id for job in page.jobs]


async def test_jobs_are_found_by_code_checkpoint_and_text(database_url):
    async with shop(database_url) as app:
        lamp = await app.submit("quote", {"of": "Lamp", "dies": "no lamp 1", "code": "OUT"})
        desk = await app.submit("quote", {"of": "desk é"}, key="K-77", correlation="req-9")
        await app.run(until_idle=True)
        chair = await app.submit("other", {"of": "chair"}, delay=3600)

        assert [lamp.id] == await ids(app, code="OUT")
        assert [desk.id, lamp.id] == await ids(app, checkpoint="looked")
        assert [lamp.id] == await ids(app, text="lamp")
        assert [desk.id] == await ids(app, text="DESK")
        assert [desk.id] == await ids(app, text="é")
        assert [desk.id] == await ids(app, text="k-77")
        assert [desk.id] == await ids(app, text="req-9")
        assert [] == await ids(app, text="100%_")
        assert [chair.id] == await ids(app, kind="other", text="a")
        assert [desk.id] == await ids(app, state=State.DONE, checkpoint="looked")
        assert [chair.id, desk.id, lamp.id] == await ids(app)
        assert [lamp.id] == await ids(app, letters=True)


async def test_a_look_that_ends_early_says_where_the_next_begins(database_url):
    async with shop(database_url) as app:
        made = await app.submit_many("other", [{"of": str(n % 5)} for n in range(20)])
        assert 20 == made.submitted

        def look(before: int | None) -> Any:
            def ask(tx):
                return query.search_ids(
                    tx, Search(text='"of":"3"'), before=before, limit=50, look=6
                )

            return ask

        database = await app.database()
        found: list[int] = []
        before: int | None = None
        looks = 0
        while True:
            page = await database.read(look(before))
            found, before, looks = found + page.ids, page.next, looks + 1
            if before is None:
                break

        assert [19, 14, 9, 4] == found
        assert 4 == looks


@pytest.mark.parametrize("limit", [1, 3, 200])
async def test_pages_meet_every_job_once(database_url, limit):
    async with shop(database_url) as app:
        await app.submit_many("other", [{"of": str(n % 3)} for n in range(12)])
        for wanted in (Search(), Search(kind="other"), Search(text='"1"')):
            met: list[int] = []
            before = None
            while True:
                page = await app.search(wanted, before=before, limit=limit)
                met += [job.id for job in page.jobs]
                if page.next is None:
                    break
                before = page.next

            assert sorted(met, reverse=True) == met
            assert len(set(met)) == len(met) == (4 if wanted.text else 12)


async def test_a_count_is_exact_as_far_as_it_looks(database_url):
    async with shop(database_url) as app:
        await app.submit_many("other", [{"of": str(n % 2)} for n in range(10)])

        assert Count(10, exact=True) == await app.count(Search(state=State.WAITING))
        assert Count(10, exact=True) == await app.count(Search(kind="other"))
        assert Count(0, exact=True) == await app.count(Search(kind="quote"))
        assert Count(5, exact=True) == await app.count(Search(text='"0"'))
        assert Count(0, exact=True) == await app.count(Search(letters=True))

        database = await app.database()

        def four(tx):
            return query.count_search(tx, Search(text='"0"'), most=4)

        assert Count(2, exact=False) == await database.read(four)


async def test_dead_letters_that_died_of_the_same_stand_together(database_url):
    async with shop(database_url) as app:
        for n in range(3):
            await app.submit("quote", {"dies": f"lamp {n} is out", "code": "OUT"})
        await app.submit("quote", {"dies": "the shop burned down", "code": "OUT"})
        away = await app.submit("quote", {"dies": "lamp 9 is out", "code": "OUT"})
        await app.run(until_idle=True)
        await app.dead.discard(away.id)

        found = await app.dead.groups(Search(letters=True))

        assert [(3, "lamp # is out"), (1, "the shop burned down")] == [
            (group.jobs, group.shape) for group in found.groups
        ]
        lamps = found.groups[0]
        assert ("OUT", ["quote"], 3, 1, True) == (
            lamps.code,
            lamps.kinds,
            lamps.newest.job,
            lamps.oldest,
            found.all,
        )
        assert [3, 2, 1] == await ids(app, letters=True, fingerprint=lamps.fingerprint)
        assert [] == (await app.dead.groups(Search(letters=True, kind="other"))).groups


async def test_dead_letters_of_a_batch_are_found_behind_any_number_of_newer_ones(database_url):
    async with shop(database_url) as app:
        old = await app.submit_many("quote", [{"dies": "lamp"}] * 3)
        await app.submit_many("quote", [{"dies": "chair"}] * 3)
        await app.run(until_idle=True)
        await app.dead.discard(1)

        of_batch = Search(letters=True, batch=old.id)
        database = await app.database()
        found = await database.read(lambda tx: query.dead_groups(tx, of_batch, look=3))

        assert [(2, "lamp")] == [(group.jobs, group.shape) for group in found.groups]
        assert [3, 2] == await ids(app, letters=True, batch=old.id)
        assert [6, 5, 4, 3, 2] == await ids(app, letters=True, kind="quote")


def test_a_fingerprint_without_a_letter_is_refused():
    with pytest.raises(BadInput, match="only dead letters"):
        Search(fingerprint="abc")
    with pytest.raises(BadInput, match="1 to 200"):
        Search(text="")


# — orders —


async def test_e12_an_order_moves_what_can_be_moved_and_names_the_rest(database_url):
    async with shop(database_url) as app:
        await app.submit("quote", {"dies": "x"})
        await app.submit("quote", {})
        await app.run(until_idle=True)
        waiting = await app.submit("quote", {}, delay=60)

        command = await app.bulk.prepare("retry", actor="ana")
        done = await app.bulk.apply(command, [1, 2, waiting.id, 99])

        assert 2 == done.moved
        assert [(waiting.id, State.WAITING), (99, None)] == [tuple(left) for left in done.left]
        assert [2, 2, 1] == [(await app.get(n)).generation for n in (1, 2, 3)]
        assert "ana" == (await app.events(1))[-1].actor


async def test_an_order_carried_out_again_moves_nothing_twice(database_url):
    """A crash between a page's commit and the step that says so: the page is met again."""
    async with shop(database_url) as app:
        await app.submit("quote", {"dies": "x"})
        await app.run(until_idle=True)
        command = await app.bulk.prepare("retry", actor="ana")
        await app.bulk.apply(command, [1])
        await app.run(until_idle=True)  # dead again, by now

        again = await app.bulk.apply(command, [1])

        assert (0, [(1, None)]) == (again.moved, [tuple(left) for left in again.left])
        assert 2 == (await app.get(1)).generation


@pytest.mark.parametrize(
    ("verb", "expected"),
    [("cancel", "canceled"), ("skip", "skipped"), ("resume", "waiting")],
)
async def test_open_jobs_are_canceled_skipped_and_left(database_url, verb, expected):
    async with shop(database_url) as app:
        await app.submit_many("other", [{} for _ in range(3)])
        command = await app.bulk.prepare(verb, why="enough", actor="ana")

        ordered, met, after = await app.bulk.apply_page(
            command, Search(), before=None, offset=0
        )

        assert (0 if verb == "resume" else 3, 3, None) == (ordered.moved, met, after)
        assert {State(expected): 3} == await app.insights.counts()


async def test_discarding_many_takes_them_off_the_list(database_url):
    async with shop(database_url) as app:
        await app.submit_many("quote", [{"dies": "x"}, {"dies": "y"}])
        await app.run(until_idle=True)
        command = await app.bulk.prepare(Verb.DISCARD, why="known", actor="ana")

        ordered, *_ = await app.bulk.apply_page(
            command, Search(letters=True), before=None, offset=0
        )

        again, *_ = await app.bulk.apply_page(
            command, Search(letters=True), before=None, offset=0
        )
        assert (2, 0, []) == (ordered.moved, again.moved, await app.dead.list())
        told = [(await app.events(job))[-1] for job in (1, 2)]
        assert [("discarded", "ana", {"why": "known"})] * 2 == [
            (event.type, event.actor, event.details) for event in told
        ]


@pytest.mark.parametrize("verb", ["explode", "", None])
async def test_only_verbs_that_there_are_can_be_ordered(database_url, verb):
    async with shop(database_url) as app:
        with pytest.raises(BadInput, match="a verb is one of"):
            await app.bulk.prepare(verb, actor="ana")
        with pytest.raises(BadInput, match="says why"):
            await app.bulk.prepare("skip", actor="ana")


# — who did what —


async def test_what_people_did_is_one_list_newest_first(database_url):
    async with shop(database_url) as app:
        batch = await app.submit_many("other", [{}, {}])
        await batch.pause(actor="ana")
        await app.cancel(1, actor="bob")
        await app.retry(1, actor="ana")
        await batch.unpause(actor="bob")
        await app.run(until_idle=True)

        page = await app.audit(AuditSearch())
        told = [(line.actor, line.verb, line.subject) for line in page.lines]

        commands = [each for each in told if each[0] in ("ana", "bob")]
        assert [
            ("bob", "batch.unpaused", "1"),
            ("ana", "job.again", "job 1"),
            ("bob", "job.canceled", "job 1"),
            ("ana", "batch.paused", "1"),
        ] == commands
        assert "job.done" not in {verb for _, verb, _ in told}
        by_ana = await app.audit(AuditSearch(actor="ana"))
        assert ["job.again", "batch.paused"] == [line.verb for line in by_ana.lines]
        assert 1 == by_ana.lines[0].job
        [line] = (await app.audit(AuditSearch(subject="job 1", verb="job.again"))).lines
        assert "ana" == line.actor
        assert 2 == len((await app.audit(AuditSearch(text="JOB 1"))).lines)


async def test_pages_of_the_audit_log_meet_every_line_once(database_url):
    async with shop(database_url) as app:
        await app.submit_many("other", [{} for _ in range(7)])
        await app.bulk.apply(
            await app.bulk.prepare("cancel", actor="ana"), range(1, 8)
        )  # one instant
        await app.limits.set("site:a", 3, actor="ana")

        met: list[tuple[str, int | None]] = []
        after = None
        while True:
            page = await app.audit(AuditSearch(actor="ana"), after=after, limit=3)
            met += [(line.verb, line.job) for line in page.lines]
            if page.next is None:
                break
            after = page.next

        assert 8 == len(met) == len(set(met))
        assert ("limit.set", None) == met[0]


async def test_the_audit_log_is_searched_between_two_instants(database_url):
    async with shop(database_url) as app:
        await app.limits.set("site:a", 3, actor="ana")
        await app.limits.set("site:b", 3, actor="ana")
        newer, older = (await app.audit(AuditSearch(actor="ana"))).lines

        since = await app.audit(AuditSearch(actor="ana", since=newer.at))
        until = await app.audit(AuditSearch(actor="ana", until=newer.at))

        assert [newer] == since.lines
        assert [older] == until.lines
        with pytest.raises(BadInput, match="is before since"):
            AuditSearch(since=newer.at, until=newer.at - timedelta(seconds=1))
        with pytest.raises(BadInput, match="needs a time zone"):
            AuditSearch(since=newer.at.replace(tzinfo=None))


# — by index, however long the history is —


async def test_no_search_reads_history_from_end_to_end(database_url):
    async with shop(database_url) as app:
        database = await app.database()
        await app.submit_many("other", [{}] * 5_000)
        await change(database, "UPDATE jobs SET state = 'dead', turn = NULL WHERE id % 500 = 0")
        await app.bulk.apply(await app.bulk.prepare("cancel", actor="ana"), [1, 2, 3])
        now = await database.read(store.now)
        spot = {"at": now, "source": 1, "x": 2, "y": 1, "since": now, "look": 100}
        ids = json.dumps(dict.fromkeys(map(str, range(1, 200)), 1))
        wanted = {"state": None, "kind": None, "batch": None, "code": None, "checkpoint": "a"}
        asked: dict[str, dict[str, Any]] = {
            "list_dead_ids": {"before": None, "limit": 100},
            "list_audit": {**spot, "access": False},
            "match_jobs": {"ids": ids, "sought": "a", "letters": 0, "within": 9, "limit": 9}
            | wanted,
            "dead_causes": {"ids": ids},
            "pick_jobs": {"jobs": ids, "since": now},
        }

        for _ in range(2):
            for verb, indices in WALKED.items():
                plan = await plan_of(database, verb, asked[verb])
                for index in indices[database.dialect]:
                    assert index in plan, f"{verb} does not use {index}:\n{plan}"
                assert not re.search(r"Seq Scan on (jobs|events|audit)", plan), plan
                assert not re.search(r"SCAN (jobs|j|e|events|audit)\b(?! USING)", plan), plan
            await database.write(lambda tx: tx.run(ANALYZE), verb="test")


WALKED = {
    "list_dead_ids": {"sqlite": ["jobs_dead"], "postgres": ["jobs_dead"]},
    "list_audit": {
        "sqlite": ["audit_at", "events_commands"],
        "postgres": ["audit_at", "events_commands"],
    },
    "match_jobs": {"sqlite": ["INTEGER PRIMARY KEY"], "postgres": ["jobs_pkey"]},
    "dead_causes": {
        "sqlite": ["INTEGER PRIMARY KEY", "sqlite_autoindex_events_1"],
        "postgres": ["jobs_pkey", "events_pkey"],
    },
    "pick_jobs": {"sqlite": ["INTEGER PRIMARY KEY"], "postgres": ["jobs_pkey"]},
}
