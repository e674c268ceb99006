"""Code that is being moved: the document's own example from its own text, killed and resumed, one at a time."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from multiprocessing import get_context
from threading import Event
from typing import Any

import pytest

from retoma.apps.quotes.face import (
    CheckpointManager,
    LeaseLost,
    ProcessingCheckpoint,
    QuoteCanceled,
    QuoteRequest,
    QuoteStatus,
    QuoteTaken,
    Session,
    SessionMaker,
)
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.rules.states import State
from retoma.engine.run import manual_claim
from tests import nursery
from tests.apps.quotes.aids import World, world
from tests.apps.quotes.quote_tasks import process_quote_request

C = ProcessingCheckpoint


@pytest.fixture
def sessions(database_url: str) -> Iterator[SessionMaker]:
    """As `SessionLocal`, on the database of this test."""
    made = SessionMaker(database_url)
    yield made
    made.close()


def quote_in(db: Session, quote: int) -> QuoteRequest:
    found = db.query(QuoteRequest).get(quote)
    assert found is not None
    return found


async def steps(there: World, quote: int) -> list[tuple[str, str]]:
    rows = await there.rows(
        "SELECT s.name, s.key FROM steps s JOIN quotes q ON q.job = s.job WHERE q.id = :q"
        " ORDER BY s.key",
        q=quote,
    )
    return [(name, key) for name, key in rows]


async def test_the_documents_example_runs_from_its_own_text(database_url, sessions, tmp_path):
    """Inside a loop that is not ours, as here."""
    async with world(database_url, tmp_path) as there:
        quote = await there.quote(2)
        seen: list[Any] = []

        def products() -> Iterator[int]:
            for n in range(3):
                seen.append(n)
                yield n

        process_quote_request(sessions, products())(quote)
        told = await there.seen(quote)
        job = await there.app.get(told["job"])

        assert [0, 1, 2] == seen
        assert ("DONE", "COMPLETED", {}) == (
            *(told["status"], told["processing_checkpoint"]),
            told["result"],
        )
        assert (State.DONE, 0.3) == (job.state, job.progress)
        assert [("AI_ANALYSIS_DONE", "face/000001")] == await steps(there, quote)
        assert told["completed_at"] is not None
        [runner] = await there.rows("SELECT state FROM runners")
        assert ("gone",) == tuple(runner)
        with pytest.raises(IllegalMove, match="has ended: DONE"):
            process_quote_request(sessions, [])(quote)


class Program:
    """One process that runs the document's text; it says a line and waits for one."""

    def __init__(self, url: str, quote: int) -> None:
        self.popen = nursery.Born(
            [sys.executable, "-m", "tests.apps.quotes.quote_tasks", url, str(quote)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    async def says(self) -> str:
        assert self.popen.stdout is not None
        return str(await asyncio.to_thread(self.popen.stdout.readline)).strip()

    def go_on(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.popen.kill()
        with self.popen:
            pass


async def test_h12_h13_killed_half_way_it_is_resumed_and_two_at_once_are_one(
    database_url, tmp_path
):
    """H-12 H-13: whoever comes second is told; what was reached is not lost with its process (-9)."""
    async with world(database_url, tmp_path) as there:
        quote = await there.quote(2)
        with Program(database_url, quote) as first, Program(database_url, quote) as second:
            lines = await asyncio.gather(first.says(), second.says())
            said = dict(zip((first, second), lines, strict=True))
            [worker] = [each for each, line in said.items() if line == "product a"]
            [other] = [each for each in said if each is not worker]
            assert said[other].startswith(f"taken: quote {quote} is at work with ")
            held = await there.seen(quote)
            assert ("PROCESSING", "AI_ANALYSIS_DONE") == (
                *(held["status"], held["processing_checkpoint"]),
            )
            assert str(worker.popen.pid) in held["worker_id"]

            worker.popen.kill()
            worker.popen.wait()
            other.go_on()
            said_then = [await other.says(), await other.says()]
            taken = await there.seen(quote)
            other.go_on()
            assert "product b" == await other.says()
            other.go_on()
            assert ["ended", ""] == [await other.says(), await other.says()]
            assert 0 == other.popen.wait()

        assert ["resumes from AI_ANALYSIS_DONE", "product a"] == said_then
        assert str(other.popen.pid) in taken["worker_id"]
        told = await there.seen(quote)
        assert "DONE" == told["status"]
        types = [str(each.type) for each in await there.app.events(told["job"])]
        assert (2, 1, 1) == (types.count("claimed"), types.count("lost"), types.count("done"))


async def test_h12_whoever_comes_while_it_is_being_claimed_is_told_who_has_it(
    database_url, tmp_path, monkeypatch
):
    """The first has claimed and not committed when the second asks."""
    claimed, asked = Event(), Event()
    take, waits = manual_claim.take, manual_claim.wait_for

    def slow_take(tx, me, *about):
        found = take(tx, me, *about)
        if me.name == "first":
            claimed.set()
            asked.wait(10)
            Event().wait(0.3)  # for whoever does not wait to look
        return found

    def seen_wait(tx, job):
        if claimed.is_set():
            asked.set()
        waits(tx, job)

    monkeypatch.setattr(manual_claim, "take", slow_take)
    monkeypatch.setattr(manual_claim, "wait_for", seen_wait)
    one, two = SessionMaker(database_url), SessionMaker(database_url)
    async with world(database_url, tmp_path) as there:
        number = await there.quote(2)
        mine, theirs = one(), two()
        first = CheckpointManager(mine, worker_id="first")
        ours = quote_in(theirs, number)
        winner = asyncio.create_task(
            asyncio.to_thread(first.can_resume, quote_in(mine, number))
        )
        await asyncio.to_thread(claimed.wait, 10)
        if "sqlite" in database_url:
            asked.set()  # its one writer keeps the second from asking at all

        with pytest.raises(QuoteTaken, match="at work with first"):
            await asyncio.to_thread(CheckpointManager(theirs).can_resume, ours)

        assert not await winner
        mine.close()
    one.close()
    two.close()


async def test_h13_a_manager_that_is_late_can_write_nothing(
    database_url, sessions, test_clock, tmp_path
):
    """Silent for ten minutes it has lost the quote; a heartbeat in time keeps it."""
    async with world(database_url, tmp_path) as there:
        number = await there.quote(2)
        late, next_ = sessions(), sessions()
        slow, quick = CheckpointManager(late, worker_id="slow"), CheckpointManager(next_)
        mine, theirs = quote_in(late, number), quote_in(next_, number)
        assert not slow.can_resume(mine)
        slow.save_checkpoint(mine, C.AI_ANALYSIS_DONE, 30, {"tested_products": [{"url": "a"}]})
        test_clock.jump(590)
        slow.update_heartbeat(mine)
        test_clock.jump(590)
        with pytest.raises(QuoteTaken, match="slow"):
            quick.can_resume(theirs)
        test_clock.jump(20)
        assert quick.can_resume(theirs)
        before = await there.seen(number)

        for late_word in (
            lambda: slow.update_heartbeat(mine),
            lambda: slow.save_checkpoint(mine, C.FINALIZATION),
            lambda: slow.complete_processing(mine, QuoteStatus.DONE),
        ):
            with pytest.raises(LeaseLost):
                late_word()
        late.close()

        assert before == await there.seen(number)
        assert C.AI_ANALYSIS_DONE == quick.get_resume_checkpoint(theirs)
        assert {"tested_products": [{"url": "a"}]} == theirs.resume_data
        quick.complete_processing(theirs, QuoteStatus.DONE, result={"price": 10.0})
        assert {"price": 10.0} == (await there.seen(number))["result"]


async def test_h16_what_was_tested_only_grows_and_what_was_paid_is_kept(
    database_url, sessions, tmp_path
):
    """By assignment and `db.commit()`, as code with a session does it; a session that ends gives back."""
    async with world(database_url, tmp_path) as there:
        number = await there.quote(2)
        with sessions() as db:
            quote = quote_in(db, number)
            manager = CheckpointManager(db)
            manager.start_processing(quote)
            quote.claude_payload_json = {"plan": "x"}
            manager.save_checkpoint(quote, C.AI_ANALYSIS_DONE)
            quote.google_shopping_response_json = {"shopping_results": []}
            db.commit()
            for n in (1, 2):
                manager.save_checkpoint(
                    quote,
                    C.PRICE_EXTRACTION_PROGRESS,
                    resume_data={"tested_products": [{"url": str(n)}], "last": n},
                )
            with pytest.raises(IllegalMove, match="PRICE_EXTRACTION_PROGRESS"):
                manager.save_checkpoint(quote, C.AI_ANALYSIS_DONE)
            with pytest.raises(IllegalMove):
                manager.save_checkpoint(quote, C.FIPE_SEARCH)  # a vehicle's way
            quote.claude_payload_json = None
            db.rollback()
            assert {"plan": "x"} == quote.claude_payload_json
        seen = await there.seen(number)
        assert "PROCESSING" == seen["status"]
        assert seen["worker_id"] is None

        db = sessions()
        again = quote_in(db, number)
        manager = CheckpointManager(db)
        assert manager.can_resume(again)
        assert C.PRICE_EXTRACTION_PROGRESS == manager.get_resume_checkpoint(again)
        assert {"plan": "x"} == again.claude_payload_json
        assert {"shopping_results": []} == again.google_shopping_response_json
        assert {"tested_products": [{"url": "1"}, {"url": "2"}], "last": 2} == again.resume_data
        manager.complete_processing(again, QuoteStatus.ERROR, error_message="no shop answers")
        seen = await there.seen(number)
        assert ("ERROR", "moved_code") == (seen["status"], seen["error_code"])
        assert {"plan": "x"} == seen["claude_payload_json"]
        assert ["face/"] * 6 == [key[:5] for _, key in await steps(there, number)]


async def test_a_quote_that_is_to_be_canceled_is_and_bad_words_change_nothing(
    database_url, sessions, tmp_path
):
    async with world(database_url, tmp_path) as there:
        number = await there.quote(2)
        db = sessions()
        manager, quote = CheckpointManager(db), quote_in(db, number)
        assert quote.job is not None
        with pytest.raises(LeaseLost):
            manager.update_heartbeat(quote)  # nobody has claimed it
        manager.start_processing(quote)
        bad: list[tuple[Any, ...]] = [
            ("NOWHERE",),
            (C.AI_ANALYSIS_DONE, 101),
            (C.AI_ANALYSIS_DONE, True),
            (C.AI_ANALYSIS_DONE, 1, [1]),
            (C.AI_ANALYSIS_DONE, 1, {"a": object()}),
        ]
        for words in bad:
            with pytest.raises(BadInput):
                manager.save_checkpoint(quote, *words)
        for status in ("FINE", QuoteStatus.PENDING):
            with pytest.raises(BadInput):
                manager.complete_processing(quote, status)  # type: ignore[arg-type]
        with pytest.raises(BadInput):
            manager.complete_processing(quote, QuoteStatus.ERROR, error_code="")
        assert [] == await steps(there, number)
        assert db.query(QuoteRequest).get(10**9) is None
        with pytest.raises(NotFound):
            manager.can_resume(None)

        await there.app.cancel(quote.job)
        with pytest.raises(QuoteCanceled):
            manager.update_heartbeat(quote)
        assert "CANCELED" == (await there.seen(number))["status"]


async def test_a_story_is_not_confused_by_what_moved_code_has_saved(
    database_url, sessions, tmp_path
):
    """Begun by the face, ended by a runner: each reads its own steps."""
    async with world(database_url, tmp_path) as there:
        number = await there.quote(2)
        with sessions() as db:
            quote = quote_in(db, number)
            manager = CheckpointManager(db)
            manager.start_processing(quote)
            manager.save_checkpoint(quote, C.AI_ANALYSIS_DONE, 30, {"note": "x"})
        await there.drained()
        seen = await there.seen(number)

        assert "DONE" == seen["status"]
        assert Decimal(seen["result"]["price"]) > 0
        assert seen["resume_data"]["tested_products"]


async def test_a_fork_of_a_process_with_a_session_has_its_own(database_url, sessions, tmp_path):
    """As in the prefork pool of Celery: what the parent holds stays the parent's."""
    async with world(database_url, tmp_path) as there:
        ours, theirs = await there.quote(2), await there.quote(3)
        db = sessions()
        manager, quote = CheckpointManager(db), quote_in(db, ours)
        manager.start_processing(quote)

        child = get_context("fork").Process(target=ended_by, args=(sessions, theirs))
        child.start()
        await asyncio.to_thread(child.join)
        assert 0 == child.exitcode
        child.close()
        manager.complete_processing(quote, QuoteStatus.DONE)

        assert ["DONE", "DONE"] == [
            (await there.seen(each))["status"] for each in (ours, theirs)
        ]


def ended_by(sessions: SessionMaker, number: int) -> None:
    process_quote_request(sessions, [])(number)
