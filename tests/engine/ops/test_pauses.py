"""Pauses of applications, kinds and queues: nothing of them is claimed, by anybody, until somebody resumes them."""

import asyncio
from collections import Counter
from threading import Event
from typing import Any

import pytest

from retoma import BadInput, Context, IllegalMove, NotFound, Retoma, State
from retoma.db import Lane, Transaction
from retoma.engine import store
from retoma.engine.ops import alerts
from retoma.engine.ops.pauses import PATIENCE
from retoma.engine.ports import Process
from retoma.engine.run import manual_claim
from retoma.engine.run.hinted import Heeded
from retoma.engine.store import Boot, Spot
from retoma.engine.store.alerts import Rule
from retoma.engine.store.hints import Again, Hint
from retoma.engine.testing import FakeClock, drain
from tests.engine.aids import boot, eventually, look, rows, running, submit

SCOPES = [("application", "quotes"), ("kind", "quote"), ("queue", "dear")]
HINTS = Again(after=30.0, young=0.0, most=100)


def build(url: str, ran: list[str] | None = None, **how: Any) -> Retoma:
    """Two kinds of two applications; what ran is told."""
    app, told = Retoma(url, **how), ran if ran is not None else []

    @app.job(queue="dear", application="quotes")
    async def quote(ctx: Context, n: int) -> None:
        told.append("quote")

    @app.job(queue="cheap", application="documents")
    async def label(ctx: Context, n: int) -> None:
        told.append("label")

    return app


async def states(app: Retoma) -> dict[str, dict[State, int]]:
    counts = await app.insights.counts_by_kind()
    return {kind: {state: n for state, n in its.items() if n} for kind, its in counts.items()}


# — what a pause holds, and what it does not —


@pytest.mark.parametrize(("scope", "name"), SCOPES)
async def test_what_is_paused_waits_until_it_is_resumed(database_url, scope, name):
    ran: list[str] = []
    async with build(database_url, ran) as app:
        await app.submit_many("quote", range(3))
        await app.submit_many("label", range(3))
        await app.pauses.pause(scope, name)

        await drain(app)
        paused = Counter(ran)
        await app.pauses.resume(scope, name)
        await drain(app)

        assert Counter(label=3) == paused
        assert Counter(label=3, quote=3) == Counter(ran)


@pytest.mark.parametrize(("scope", "name"), SCOPES)
async def test_a_living_runner_hears_of_a_pause_and_of_its_end(database_url, scope, name):
    ran: list[str] = []
    async with build(database_url, ran) as app, running(app):
        await app.pauses.pause(scope, name)
        await app.submit("quote", 1)
        await app.submit("label", 1)
        await eventually(lambda: _is(ran, ["label"]))
        await app.submit("label", 2)
        await eventually(lambda: _is(ran, ["label", "label"]))

        await app.pauses.resume(scope, name)

        await eventually(lambda: _is(ran, ["label", "label", "quote"]))


async def _is(found: list[str], wanted: list[str]) -> bool:
    return found == wanted


async def test_what_runs_goes_on_to_its_end_and_nothing_more_begins(database_url):
    began, go_on = asyncio.Event(), asyncio.Event()
    async with Retoma(database_url) as app:

        @app.job
        async def long(ctx: Context, n: int) -> int:
            began.set()
            await go_on.wait()
            return n

        first = await app.submit("long", 1)
        async with running(app):
            await began.wait()
            await app.pauses.pause("kind", "long")
            second = await app.submit("long", 2)
            go_on.set()

            await eventually(lambda: _state(app, first.id, State.DONE))

        assert State.WAITING is (await app.get(second.id)).state


async def _state(app: Retoma, job: int, state: State) -> bool:
    return (await app.get(job)).state is state


async def test_of_a_shared_queue_only_the_paused_kind_waits(database_url):
    ran: list[str] = []
    async with Retoma(database_url) as app:
        for name in ("one", "other"):
            app.job(name=name, queue="shared")(_telling(ran, name))
        await app.submit_many("one", range(5))
        await app.submit_many("other", range(5))
        await app.pauses.pause("kind", "one")

        await drain(app)

        assert ["other"] * 5 == ran


def _telling(ran: list[str], name: str) -> Any:
    async def story(ctx: Context, n: int) -> None:
        ran.append(name)

    return story


async def test_due_times_keep_while_their_queue_is_paused(database_url):
    clock = FakeClock()
    async with build(database_url, clock=clock) as app:
        job = await app.submit("quote", 1, delay=60)
        await app.pauses.pause("queue", "dear")
        clock.advance(3_600)

        await drain(app)
        waits = await app.get(job.id)
        await app.pauses.resume("queue", "dear")
        await drain(app)

        assert (State.WAITING, False, job.run_at) == (waits.state, waits.due, waits.run_at)
        assert State.DONE is (await app.get(job.id)).state


async def test_a_kind_that_a_paused_application_gets_later_is_paused_too(database_url):
    ran: list[str] = []
    async with build(database_url) as app, Retoma(database_url) as newer:
        await app.pauses.pause("application", "quotes")
        newer.job(name="requote", application="quotes")(_telling(ran, "requote"))
        job = await newer.submit("requote", 1)

        await drain(newer)

        assert (State.WAITING, []) == ((await newer.get(job.id)).state, ran)


async def test_where_all_is_paused_a_runner_is_idle(database_url):
    async with build(database_url) as app:
        await app.submit("quote", 1, delay=3_600)
        await app.submit("label", 1)
        await app.pauses.pause("application", "quotes")
        await app.pauses.pause("application", "documents")

        await drain(app)

        assert {"quote": {State.WAITING: 1}, "label": {State.WAITING: 1}} == await states(app)


# — nothing is claimed once the call has returned —


async def test_a_pause_returns_after_every_claim_that_has_not_seen_it(database_url):
    """A claim in the act has not seen the pause: the call that pauses waits for its commit."""
    happened: list[str] = []
    claimed, commit = Event(), Event()
    async with build(database_url) as app:
        database = await app.database()
        await boot(database, knows=["quote@1"])
        await submit(database, kind="quote", queue="dear")

        def slow_claim(tx: Transaction) -> int:
            found = store.claim_past_gates(
                tx,
                "me",
                [Spot("dear")],
                ["quote@1"],
                slots=1,
                suspects=0,
                promote=False,
                meet=1,
            )
            claimed.set()
            commit.wait(PATIENCE / 2)
            happened.append("claimed")
            return len(found.claims)

        async def pause() -> None:
            await app.pauses.pause("kind", "quote")
            happened.append("paused")

        claiming = asyncio.create_task(database.write(slow_claim, verb="t", lane=Lane.CLAIM))
        await asyncio.to_thread(claimed.wait)
        pausing = asyncio.create_task(pause())
        await asyncio.wait([pausing], timeout=0.3)  # broken, it is over by now
        commit.set()

        assert 1 == await claiming
        await pausing
        assert ["claimed", "paused"] == happened


async def test_a_claim_that_has_not_heard_of_a_pause_gets_nothing_and_is_told(database_url):
    async with build(database_url) as app:
        database = await app.database()
        await boot(database, knows=["label@1"])
        await submit(database, kind="label", queue="cheap")
        asked: dict[str, Any] = {"queues": ["cheap"], "knows": ["label@1"]}
        await app.pauses.pause("kind", "quote")

        unheard = await look(database, "me", **asked)
        past_gates = await database.write(
            lambda tx: store.claim_past_gates(
                tx, "me", [Spot("cheap")], ["label@1"],
                slots=1, suspects=0, promote=False, meet=1,
            ),
            verb="claim",
        )  # fmt: skip
        heard = await database.read(store.pauses.known)
        found = await database.write(
            lambda tx: store.claim_jobs(
                tx, "me", [Spot("cheap")], ["label@1"],
                slots=1, suspects=0, promote=False, pauses=heard.change,
            ),
            verb="claim",
        )  # fmt: skip

        assert ([], True, False) == (unheard.claims, unheard.unheard, unheard.gated)
        assert ([], True) == (past_gates.claims, past_gates.unheard)
        assert (1, False) == (len(found.claims), found.unheard)


@pytest.mark.parametrize(("scope", "name"), SCOPES)
async def test_hints_and_lone_claims_respect_it(database_url, scope, name):
    async with build(database_url) as app:
        job = await app.submit("quote", 1)
        runner = await app.hinted()
        await app.pauses.pause(scope, name)

        paused = await runner.heed(Hint("dear", job.id))
        hinted = await runner.hint_again(HINTS)
        with pytest.raises(IllegalMove, match="cannot be claimed now"):
            await _take_alone(app, job.id)
        await app.pauses.resume(scope, name)
        hinted_again = await runner.hint_again(HINTS)

        assert (Heeded.PASSED, []) == (paused, hinted)
        assert [Hint("dear", job.id)] == hinted_again
        assert Heeded.RAN is await runner.heed(Hint("dear", job.id))
        other = await app.submit("quote", 2)
        assert other.id == (await _take_alone(app, other.id)).job


async def _take_alone(app: Retoma, job: int) -> Any:
    me = Boot(
        id=f"alone-{job}", name="face", process=Process.this(), version="", slots=1,
        knows=["quote@1"],
    )  # fmt: skip
    database = await app.database()
    found, _ = await database.write(
        lambda tx: manual_claim.take(tx, me, 60.0, "dear", job), verb="claim"
    )
    return found


# — who did it, and what people are told —


async def test_asked_again_it_stays_as_it_is_and_is_told_once(database_url):
    async with build(database_url) as app:
        first, changed = await app.pauses.pause("kind", "quote", "prices", actor="ana")
        again, changed_again = await app.pauses.pause("kind", "quote", actor="bob")
        listed = await app.pauses.all()
        resumed = [await app.pauses.resume("kind", "quote", actor="bob") for _ in range(2)]

        assert (True, False) == (changed, changed_again)
        assert first == again
        assert ("ana", "prices") == (first.actor, first.why)
        assert [first] == listed
        assert [True, False] == resumed
        assert [] == await app.pauses.all()
        told = await rows(
            await app.database(),
            "SELECT actor, verb, subject FROM audit WHERE verb LIKE 'kind.%' ORDER BY id",
        )
        assert [("ana", "kind.paused", "quote"), ("bob", "kind.resumed", "quote")] == told


async def test_what_nobody_knows_cannot_be_paused(database_url):
    async with build(database_url) as app:
        with pytest.raises(NotFound, match="known: label, quote"):
            await app.pauses.pause("kind", "qoute")
        with pytest.raises(NotFound, match="there is no queue"):
            await app.pauses.resume("queue", "quote")
        with pytest.raises(BadInput, match="application, kind, queue"):
            await app.pauses.pause("batch", "1")
        assert ["documents", "quotes"] == (await app.pauses.names())[
            store.pauses.Scope.APPLICATION
        ]


@pytest.mark.parametrize(("scope", "name"), SCOPES)
async def test_a_waiting_job_says_that_it_is_paused_and_by_whom(database_url, scope, name):
    async with build(database_url) as app:
        job = await app.submit("quote", 1)
        await app.pauses.pause(scope, name, "the vendor is away", actor="ana")

        why = str(await app.explain(job.id))

        assert f"its {scope} {name} is paused since " in why
        assert "by ana (the vendor is away)" in why
        assert f"`retoma pauses resume {scope} {name}`" in why


@pytest.mark.parametrize(("scope", "name"), SCOPES)
async def test_nobody_is_alerted_of_what_waits_on_purpose(database_url, scope, name):
    clock = FakeClock()
    async with build(database_url, clock=clock) as app:
        await app.submit("quote", 1)
        clock.advance(3_600)
        database = await app.database()
        await app.pauses.pause(scope, name)

        paused = await database.read(lambda tx: alerts.find(tx, "UTC"))
        await app.pauses.resume(scope, name)
        resumed = await database.read(lambda tx: alerts.find(tx, "UTC"))

        assert {} == paused
        assert [(Rule.NO_RUNNER, "dear")] == list(resumed)


# — a batch that is paused —


async def test_until_idle_does_not_wait_for_a_paused_batch(database_url):
    async with build(database_url) as app:
        batch = await app.submit_many("quote", range(3), delay=3_600)
        at_once = await app.submit_many("label", range(3))
        await batch.pause()
        await at_once.pause()

        await drain(app)

        assert {State.WAITING: 3} == {s: n for s, n in (await batch.counts()).items() if n}


async def test_what_is_resumed_while_it_is_paused_again_is_paused(database_url, monkeypatch):
    """Found paused, and resumed by another before it is read: on PostgreSQL that is one pause later."""
    seen = store.pauses.list_pauses
    async with build(database_url) as app:
        await app.pauses.pause("kind", "quote", actor="Olga")
        met: list[Any] = []

        def gone_once(tx):
            if not met:
                met.append(tx)
                store.pauses.resume(tx, store.pauses.Scope.KIND, "quote", actor="Rui")
            return seen(tx)

        monkeypatch.setattr(store.pauses, "list_pauses", gone_once)
        paused, was_new = await app.pauses.pause("kind", "quote", actor="Ana")

        assert ("Ana", True) == (paused.actor, was_new)
        assert [("kind", "quote")] == [
            (each.scope, each.name) for each in await app.pauses.all()
        ]
