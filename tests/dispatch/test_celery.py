"""The dispatcher in one process: what it tells Celery, and what its tasks do. E26, row 39."""

import asyncio
import json
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from structlog.testing import capture_logs

from retoma import BadInput, Context, Retoma, State
from retoma.dispatch import celery as dispatch
from retoma.dispatch.celery import CeleryDispatcher
from retoma.dispatch.consumer import strict_consumer
from tests.engine.aids import rows

MEMORY = "memory://"  # kombu's own, for what needs no server


def build(url: str) -> Retoma:
    app = Retoma(url)

    @app.job
    async def work(ctx: Context, payload: Any) -> Any:
        return payload

    return app


@pytest.fixture
def app(database_url: str) -> Iterator[Retoma]:
    app = build(database_url)
    yield app
    asyncio.run(app.close())


@pytest.fixture
def celery_app() -> Celery:
    return Celery("tests", broker=MEMORY)


@pytest.fixture
def dispatcher(celery_app: Celery, app: Retoma) -> Iterator[CeleryDispatcher]:
    """One whose tasks are called in this very process."""
    dispatcher = CeleryDispatcher(celery_app, app, rehint=30, tick=0.001)
    yield dispatcher
    dispatcher._on_process_end()
    if dispatcher._shared is not None:
        dispatcher._shared.close()
    dispatcher._disconnect()


def do(dispatcher: CeleryDispatcher, task: str, **kwargs: Any) -> None:
    """As a worker calls it."""
    done = dispatcher._celery.tasks[task].apply(kwargs=kwargs)
    assert done.successful(), done.traceback


def queued(dispatcher: CeleryDispatcher) -> list[dict[str, Any]]:
    """The messages that wait at the broker, taken out."""
    found = []
    with dispatcher._celery.connection() as connection:
        queue = connection.SimpleQueue(dispatcher._queue)
        while queue.qsize():
            message = queue.get_nowait()
            message.ack()
            found.append({"task": message.headers["task"], "body": json.loads(message.body)})
        queue.close()
    return found


# --- telling


async def test_a_submitted_job_is_a_hint_with_two_fields_and_no_payload(database_url):
    celery_app = Celery("tests", broker=MEMORY)
    async with build(database_url) as app:
        dispatcher = CeleryDispatcher(celery_app, app, queue=f"hints-{id(app)}")
        job = await app.submit("work", {"secret": "canary"})
        await app.submit("work", 2, delay=60)  # not before it is due
        await app.submit_many("work", [3, 4], name="two")
        await app.write(lambda tx: [tx.submit("work", 5), tx.submit_many("work", [6])])
    messages = queued(dispatcher)
    dispatcher._disconnect()

    ids = [job.id, *range(job.id + 2, job.id + 6)]
    hinted = [message["body"][1] for message in messages]
    assert [{"queue": "work", "job": each} for each in ids] == hinted
    assert {"retoma.run"} == {message["task"] for message in messages}
    assert "canary" not in json.dumps(messages)


async def test_what_is_rolled_back_is_never_hinted(database_url):
    celery_app = Celery("tests", broker=MEMORY)

    def change_of_mind(tx: Any) -> None:
        tx.submit("work", 1)
        raise ValueError("no")

    async with build(database_url) as app:
        dispatcher = CeleryDispatcher(celery_app, app, queue=f"hints-{id(app)}")
        with pytest.raises(ValueError, match="no"):
            await app.write(change_of_mind)
    messages = queued(dispatcher)
    dispatcher._disconnect()

    assert [] == messages


async def test_e26_with_a_dead_broker_submits_go_on_and_one_warning_is_said(database_url):
    nobody = "redis://127.0.0.1:1/0"
    with capture_logs() as logs:
        async with build(database_url) as app:
            CeleryDispatcher(Celery("tests", broker=nobody), app)
            for n in range(200):
                await app.submit("work", n)
            await app.run(until_idle=True)  # who polls needs no broker
            counts = await app.insights.counts()

    assert {State.DONE: 200} == counts
    assert 1 == sum(line["event"] == "hints.not_sent" for line in logs)


# --- duties


def test_beat_sends_every_duty_and_the_two_of_seed_000(celery_app, app):
    celery_app.conf.beat_schedule = {"theirs": {"task": "theirs", "schedule": 1.0}}

    dispatcher = CeleryDispatcher(celery_app, app)

    entries = celery_app.conf.beat_schedule
    assert {*dispatch.DUTIES, "theirs"} == set(entries)
    assert set(dispatch.DUTIES) == set(dispatcher.beat_schedule)
    stuck, old = entries["recover_stuck_quotes"], entries["cleanup_old_processing"]
    assert set(range(0, 60, 5)) == stuck["schedule"].minute
    assert ({4}, {0}) == (old["schedule"].hour, old["schedule"].minute)
    for name, entry in dispatcher.beat_schedule.items():
        assert name == entry["task"]
        assert ("retoma", True) == (
            entry["options"]["queue"],
            entry["options"]["ignore_result"],
        )


def test_tasks_ignore_results_and_speak_json(celery_app, app):
    CeleryDispatcher(celery_app, app)

    for name in ("retoma.run", *dispatch.DUTIES):
        task = celery_app.tasks[name]
        assert (True, "json", False) == (task.ignore_result, task.serializer, task.acks_late)


def test_a_fleet_of_celery_alone_is_complete(dispatcher, app, test_clock):
    """Scheduled, retried, folded and retired by tasks, with no runner of retoma anywhere."""
    app.schedule("hourly", "work", cron="0 * * * *", payload=1)
    asyncio.run(app.upgrade())
    test_clock.jump(0)
    later = asyncio.run(app.submit("work", 2, delay=60))
    queued(dispatcher)

    test_clock.jump(3600)
    do(dispatcher, "retoma.schedules")
    test_clock.jump(1)
    do(dispatcher, "retoma.hint_again")
    hints = [message["body"][1] for message in queued(dispatcher)]
    for hint in hints:
        do(dispatcher, "retoma.run", **hint)
    do(dispatcher, "retoma.fold")
    for name in (
        "retoma.recover",
        "retoma.retention",
        "recover_stuck_quotes",
        "cleanup_old_processing",
    ):
        do(dispatcher, name)

    counts, tallies = asyncio.run(counted(app))
    assert {later.id} <= {hint["job"] for hint in hints}
    assert {State.DONE: len(hints)} == counts
    assert len(hints) >= 2  # the tick, and what had become due
    assert 0 == tallies


async def counted(app: Retoma) -> tuple[dict[State, int], int]:
    [(tallies,)] = await rows(await app.database(), "SELECT count(*) FROM tallies")
    return await app.insights.counts(), tallies


def test_duties_that_piled_up_are_not_done_again_and_again(celery_app, app):
    dispatcher = CeleryDispatcher(celery_app, app, rehint=7200, tick=3600)
    calls: list[str] = []

    for _ in range(100):
        dispatcher._run_task("retoma.fold", lambda: calls.append("fold"))
    dispatcher._run_task("retoma.recover", lambda: calls.append("recover"))

    assert ["fold", "recover"] == calls


def test_no_storm_a_full_broker_is_told_of_nothing_more(
    dispatcher, app, test_clock, monkeypatch
):
    monkeypatch.setattr(dispatch, "DEPTH", 10)
    asyncio.run(app.submit_many("work", range(25), name="many"))
    dispatcher._sender.close()
    queued(dispatcher)
    test_clock.jump(31)

    for _ in range(3):
        do(dispatcher, "retoma.hint_again")
        test_clock.jump(31)
    waiting = queued(dispatcher)
    do(dispatcher, "retoma.hint_again")
    more = queued(dispatcher)

    assert 10 == len(waiting) == len({m["body"][1]["job"] for m in waiting})
    assert 10 == len(more)


def test_no_storm_nobody_is_hinted_again_while_the_broker_has_many(
    dispatcher, app, test_clock, monkeypatch
):
    monkeypatch.setattr(dispatch, "FEW", 3)
    asyncio.run(app.submit_many("work", range(10), name="many"))
    dispatcher._sender.close()
    queued(dispatcher)

    for _ in range(4):
        test_clock.jump(31)
        do(dispatcher, "retoma.hint_again")
    waiting = queued(dispatcher)
    do(dispatcher, "retoma.hint_again")
    more = queued(dispatcher)

    assert 10 == len(waiting) == len(more)


# --- bad input


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"accept_content": ["json", "pickle"]}, "accepts pickle"),
        ({"task_compression": "gzip"}, "cannot be compressed"),
    ],
)
def test_an_app_that_unpacks_anything_is_refused(celery_app, app, settings, told):
    celery_app.conf.update(settings)

    with pytest.raises(BadInput, match=told):
        CeleryDispatcher(celery_app, app)

    assert 0 == app.dispatcher.most


@pytest.mark.parametrize("how", [{"rehint": 0}, {"tick": -1}, {"rehint": 1, "tick": 2}])
def test_times_that_make_no_sense_are_refused(celery_app, app, how):
    with pytest.raises(BadInput, match="rehint and tick"):
        CeleryDispatcher(celery_app, app, **how)


def test_row_39_bad_arguments_change_nothing_and_are_said_once(dispatcher, app):
    job = asyncio.run(app.submit("work", 1))
    bad: list[dict[str, Any]] = [
        {},
        {"job": job.id},
        {"queue": "work", "job": "1"},
        {"x": "y" * 10**6},
    ]

    with capture_logs() as logs:
        for kwargs in [*bad, *bad]:
            do(dispatcher, "retoma.run", **kwargs)
            do(dispatcher, "retoma.fold", x=1)
        for _ in range(5):
            do(dispatcher, "retoma.run", queue="work", job=10**9)
            do(dispatcher, "retoma.run", queue="other", job=job.id)

    ignored = [
        (line["bad"], len(line["seen"]) <= 100)
        for line in logs
        if line["event"] == "hint.ignored"
    ]
    assert [("shape", True), ("unknown", True)] == ignored
    assert State.WAITING == asyncio.run(app.get(job.id)).state


class Message:
    """As kombu hands one over."""

    def __init__(self, body: Any, queue: str = "retoma", **how: Any) -> None:
        self.body = body
        self.headers = how.get("headers", {"task": "retoma.run"})
        self.content_type = how.get("content_type", "application/json")
        self.content_encoding = "utf-8"
        self.delivery_info = {"routing_key": queue}
        self.acks = 0

    def ack(self) -> None:
        self.acks += 1


class Consumer:
    """As Celery's, as far as we go: hands on what it is given."""

    def __init__(self) -> None:
        self.took: list[Any] = []

    def create_task_handler(self) -> Any:
        return self.took.append


def test_row_39_ten_thousand_of_each_are_one_warning_of_each(celery_app):
    dispatcher = CeleryDispatcher(celery_app, build("sqlite:///never.db"))
    kind = strict_consumer(Consumer, "retoma", dispatch.DUTIES, dispatcher._ignore)
    consumer = kind()
    take = consumer.create_task_handler()
    pickled = pickle.dumps([[], {"queue": "work", "job": 1}, {}])
    good = json.dumps([[], {"queue": "work", "job": 1}, {"callbacks": None}])
    bad = [
        Message(pickled, content_type="application/x-python-serialize"),
        Message("x" * 100_000),
        Message(good, headers={"task": "somebody.else"}),
        Message(good, headers=None),
        Message("not json"),
        Message(None),
        Message("not json", queue="theirs"),
        Message(good, headers={"task": "retoma.run", "compression": "application/x-gzip"}),
    ]
    elsewhere = Message(pickled, queue="theirs", headers={"task": "theirs"})

    with capture_logs() as logs:
        for _ in range(10_000):
            for message in bad:
                take(message)
        take(Message(good))
        take(elsewhere)

    dispatcher._shared_state().close()
    ignored = [line["bad"] for line in logs]
    assert ["encoding", "size", "foreign", "shape"] == ignored
    assert {10_000} == {message.acks for message in bad}
    assert 2 == len(consumer.took)
    assert consumer.took[1] is elsewhere
    assert 0 == elsewhere.acks


class SoftLimit(BaseException):
    """As Celery's SoftTimeLimitExceeded, which a signal raises wherever the task is."""


def test_a_task_that_celery_stops_gives_its_job_back(dispatcher, app):
    begun = threading.Event()

    async def patient(ctx: Context, _payload: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    app.job(patient)
    job = asyncio.run(app.submit("patient"))
    main = os.getpid()

    def stop(*_: object) -> None:
        raise SoftLimit

    def stop_when_it_has_begun() -> None:
        begun.wait(20)
        os.kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, stop)
    stopper = threading.Thread(target=stop_when_it_has_begun)
    stopper.start()
    try:
        with pytest.raises(SoftLimit):
            dispatcher._process_message(queue="patient", job=job.id)
    finally:
        stopper.join()
        signal.signal(signal.SIGUSR1, before)

    assert "released" == asyncio.run(app.events(job.id))[-1].type
    assert State.WAITING == asyncio.run(app.get(job.id)).state
