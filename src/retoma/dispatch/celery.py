"""Celery carries the wake-ups: a message is a hint (queue, job), the database is the truth.

    celery_app = Celery("project", broker="redis://…")
    dispatcher = CeleryDispatcher(celery_app, app)

A task claims that very job as a runner would, runs its story and settles it, or returns because
somebody has it. Beat sends the duties, so a fleet of Celery workers alone is complete; runners of
retoma may stand beside them. Messages that are lost, late, doubled or in any order change nothing.
"""

import os
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from celery import Celery, signals
from celery.exceptions import OperationalError
from celery.schedules import crontab

from retoma.db import DatabaseError, Transaction
from retoma.dispatch.consumer import strict_consumer
from retoma.dispatch.family import Family
from retoma.dispatch.inside import Home, Inside
from retoma.dispatch.message import RUN, Bad, read_hint, read_number
from retoma.dispatch.sender import WAITING, Sender
from retoma.engine.duty import Duty
from retoma.engine.errors import BadInput
from retoma.engine.hinted import Heeded, HintedRunner, Leaving
from retoma.engine.log import get_logger
from retoma.engine.store.hints import Again, Hint
from retoma.words import say

QUEUE = "retoma"
AGAIN = 30.0  # seconds until a job that still waits is hinted once more: half a lease
TICK = 5.0  # seconds between two looks around, as a runner's
HOUR = 3_600.0
DEPTH = 10_000  # messages in the broker with which no more are sent
FEW = 1_000  # messages in the broker with which nobody is hinted again: they have enough to do
ALONE = ("prefork", "solo")  # pools whose processes do one task at a time
# Redis is asked through sockets that may hang for ever unless they are told not to.
IMPATIENT = {"socket_connect_timeout": 2.0, "socket_timeout": 5.0, "max_retries": 1}

RECOVER, HINT_AGAIN = "retoma.recover", "retoma.hint_again"
FOLD, SCHEDULES, RETENTION = "retoma.fold", "retoma.schedules", "retoma.retention"
# The names of seed 000. Both take back what the lost left, and never touch what a living one holds.
STUCK, OLD = "recover_stuck_quotes", "cleanup_old_processing"
DUTIES = frozenset({RECOVER, HINT_AGAIN, FOLD, SCHEDULES, RETENTION, STUCK, OLD})

# Of which job a number of somebody else's is.
Find = Callable[[Transaction, int], Hint | None]

log = get_logger("retoma.dispatch")


class ZonedCrontab(crontab):  # type: ignore[misc]
    """A crontab by the clock of one zone, whatever zone the Celery app is set to."""

    def __init__(self, zone: str, **fields: Any) -> None:
        super().__init__(**fields)
        self._zone = zone
        self._fields = fields
        self.tz = ZoneInfo(zone)  # Celery reads its app's only where this is not set

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._fields), (self._zone,)


class CeleryDispatcher:
    """Tells Celery of ready jobs, and runs them where a worker hears of them.

    `queue`: of the broker, for hints and duties alone; workers are started with `-Q retoma`.
    `tick`: seconds between two looks around by Beat, and until a new job that waits is hinted again.
    `again`: seconds after which a job that still waits is hinted once more.
    `knobs`: of the runner in each process of a worker, as `app.run` takes them.
    """

    most = WAITING

    def __init__(
        self,
        celery_app: Celery,
        retoma_app: Home,
        *,
        queue: str = QUEUE,
        again: float = AGAIN,
        tick: float = TICK,
        **knobs: Any,
    ) -> None:
        _check(celery_app, again=again, tick=tick)
        self._celery = celery_app
        self._home = retoma_app
        self._queue = queue
        self._again = again
        self._tick = tick
        self._knobs = knobs
        self._family: Family | None = None
        self._worker: Any = None
        self._inside: tuple[int, Inside] | None = None
        self._done: dict[str, float] = {}
        self._exported: dict[str, Find] = {}
        self._also: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {}
        self._sender = Sender(self._send)
        self._link: tuple[int, Any] | None = None
        self._run = self._task(RUN, self._heed)
        self._register()
        retoma_app.dispatcher = self

    # — what an application adds —

    def export(self, name: str, find: Find) -> Any:
        """A Celery task `name` for whoever knows a number of his own: `name.delay(42)` is a hint of the job
        that `find` says. None: there is no such thing, and nothing is done."""
        self._exported[name] = find
        self._route(name)
        return self._task(name, partial(self._heed_number, find))

    def also(self, duty: str, do: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """What is done beside that duty, whenever Beat asks for it."""
        self._also[duty] = do

    # — telling —

    def hint(self, hints: Sequence[Hint]) -> None:
        self._sender.put(hints)

    def flush(self, seconds: float) -> bool:
        """Whether every hint is with the broker, or given up, within that time."""
        return self._sender.flush(seconds)

    def close(self) -> None:
        self._sender.close()

    @property
    def beat_schedule(self) -> dict[str, dict[str, Any]]:
        """What Beat must send. It stands in the app's own schedule already; name it where you set
        `beat_schedule` anew."""
        periods = {
            **dict.fromkeys((RECOVER, HINT_AGAIN, FOLD, SCHEDULES), self._tick),
            RETENTION: HOUR,
            STUCK: crontab(minute="*/5"),
            OLD: ZonedCrontab(self._home.timezone, hour="4", minute="0"),
        }
        options = {"queue": self._queue, "ignore_result": True, "serializer": "json"}
        return {
            name: {"task": name, "schedule": period, "options": options}
            for name, period in periods.items()
        }

    def _send(self, hints: Sequence[Hint]) -> None:
        try:
            with self._connected().Producer() as producer:
                for hint in hints:
                    self._run.apply_async(
                        kwargs=hint._asdict(),
                        queue=self._queue,
                        producer=producer,
                        retry=False,
                        serializer="json",
                        ignore_result=True,
                    )
        except BaseException:
            self._disconnect()
            raise

    def _depth(self) -> int:
        """How many messages lie in the broker."""
        try:
            with self._connected().channel() as channel:
                there: int = channel.queue_declare(self._queue, passive=True).message_count
        except self._connected().channel_errors:
            return 0  # nobody has made it yet
        except BaseException:
            self._disconnect()
            raise
        return there

    def _connected(self) -> Any:
        """A connection of this very process."""
        if self._link is None or self._link[0] != os.getpid():
            url = self._celery.conf.broker_write_url
            redis = str(url or "").startswith(("redis", "sentinel"))
            options = IMPATIENT if redis else {}
            connection = self._celery.connection(url, transport_options=options)
            self._link = os.getpid(), connection
        return self._link[1]

    def _disconnect(self) -> None:
        link, self._link = self._link, None
        if link is not None and link[0] == os.getpid():
            link[1].release()

    # — heeding —

    def _heed(self, *args: Any, **kwargs: Any) -> None:
        hint = read_hint(args, kwargs)
        if hint is None:
            self._ignore(Bad.SHAPE, repr((args, kwargs))[:100])
        else:
            self._heed_hint(hint)

    def _heed_number(self, find: Find, *args: Any, **kwargs: Any) -> None:
        number = read_number(args, kwargs)
        if number is None:
            self._ignore(Bad.SHAPE, repr((args, kwargs))[:100])
            return
        with _passing(RUN):
            hint = self._here().ask(lambda _: self._found(find, number))
            if hint is None:
                self._ignore(Bad.UNKNOWN, str(number))
            else:
                self._heed_hint(hint)

    async def _found(self, find: Find, number: int) -> Hint | None:
        return await (await self._home.database()).read(lambda tx: find(tx, number))

    def _heed_hint(self, hint: Hint) -> None:
        with _passing(RUN):
            heeded = self._here().run(lambda runner: runner.heed(hint), hint)
            if heeded is Heeded.UNKNOWN:
                self._ignore(Bad.UNKNOWN, f"{hint.queue} {hint.job}")
            elif heeded is Heeded.MADE_ROOM:
                self._hint_ready(1, hint.queue)

    def _hint_again(self) -> None:
        depth = self._depth()
        self._hint_ready(DEPTH - depth, repeat=depth < FEW)

    def _hint_ready(self, most: int, queue: str | None = None, *, repeat: bool = True) -> None:
        if most > 0:
            again = Again(after=self._again, young=self._tick, most=most, repeat=repeat)
            ready = self._here().ask(lambda runner: runner.hint_again(again, queue))
            self._send(ready)

    def _recover(self) -> None:
        self._here().ask(HintedRunner.recover)

    def _do(self, *duties: Duty) -> None:
        for duty in duties:
            self._here().ask(partial(HintedRunner.do, duty=duty))

    def _here(self) -> Inside:
        """The retoma of this very process."""
        if self._inside is None or self._inside[0] != os.getpid():
            knobs = {"slots": self._slots(), "name": self._worker_name(), **self._knobs}
            self._inside = os.getpid(), Inside(self._home, self._shared(), knobs)
        return self._inside[1]

    def _slots(self) -> int:
        pool = getattr(self._worker, "pool_cls", "")
        name = pool if isinstance(pool, str) else pool.__module__.rpartition(".")[2]
        return int(self._worker.concurrency) if name and name not in ALONE else 1

    def _worker_name(self) -> str:
        """As Celery calls this worker (`celery@host`), so that a person finds it in both."""
        return str(getattr(self._worker, "hostname", None) or "celery")

    def _ignore(self, bad: Bad, seen: str) -> None:
        """Each sort is said once by a worker, however often it comes."""
        if self._shared().first(bad):
            log.warning("hint.ignored", bad=bad, seen=seen)

    # — tasks and signals —

    def _register(self) -> None:
        duties: dict[str, Callable[[], None]] = {
            RECOVER: self._recover,
            STUCK: self._recover,
            OLD: self._recover,
            HINT_AGAIN: self._hint_again,
            FOLD: partial(self._do, Duty.FOLD, Duty.FILL),
            SCHEDULES: partial(self._do, Duty.SCHEDULE),
            RETENTION: partial(self._do, Duty.RETENTION),
        }
        for name, do in duties.items():
            self._task(name, partial(self._on_duty, name, do))
        conf = self._celery.conf
        conf.beat_schedule = {**self.beat_schedule, **(conf.beat_schedule or {})}
        conf.worker_consumer = strict_consumer(
            conf.worker_consumer, self._queue, DUTIES, self._ignore, self._exported
        )
        signals.worker_init.connect(self._worker_begins, weak=False)
        signals.worker_shutting_down.connect(self._worker_leaves, weak=False)
        signals.worker_process_shutdown.connect(self._process_ends, weak=False)
        signals.worker_shutdown.connect(self._process_ends, weak=False)

    def _route(self, name: str) -> None:
        """Whoever calls that task tells our own queue."""
        conf = self._celery.conf
        routes = conf.task_routes or []
        others = [*routes] if isinstance(routes, list | tuple) else [routes]
        conf.task_routes = [{name: {"queue": self._queue}}, *others]
        self._celery.amqp.flush_routes()

    def _task(self, name: str, run: Callable[..., None]) -> Any:
        def task(*args: Any, **kwargs: Any) -> None:
            run(*args, **kwargs)

        return self._celery.task(
            name=name,
            shared=False,  # of this app alone: others have their own
            ignore_result=True,
            serializer="json",
            typing=False,
            acks_late=False,
        )(task)

    def _on_duty(self, name: str, do: Callable[[], None], *args: Any, **kwargs: Any) -> None:
        """Once in a while: what piled up while no worker listened is not done again and again."""
        now = self._home.clock.now()
        if args or kwargs:
            self._ignore(Bad.SHAPE, repr((args, kwargs))[:100])
        elif now - self._done.get(name, -HOUR) >= self._tick / 2:
            self._done[name] = now
            with _passing(name):
                do()
                if name in self._also:
                    self._here().ask(lambda _: self._also[name]())

    def _worker_begins(self, sender: Any = None, **_: Any) -> None:
        if sender.app is self._celery:
            self._worker = sender
            self._shared()

    def _worker_leaves(self, **_: Any) -> None:
        if self._family is not None:
            self._family.tell_leaving()

    def _process_ends(self, **_: Any) -> None:
        if self._inside is not None and self._inside[0] == os.getpid():
            self._inside[1].leave()
            self._inside = None
        self._sender.close()

    def _shared(self) -> Family:
        if self._family is None:
            self._family = Family()
        return self._family


class _passing:  # noqa: N801 — `with _passing("retoma.run"):` is how it is read
    """Nothing that a message asked for is worth an error of Celery: it is hinted again."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, DatabaseError | OperationalError | OSError):
            log.warning("hint.not_heeded", task=self._what, error=str(error))
            return True
        return isinstance(error, Leaving)


def _check(celery_app: Celery, *, again: float, tick: float) -> None:
    conf = celery_app.conf
    accepted = set(conf.accept_content or ())
    if not accepted <= {"json", "application/json"}:
        raise BadInput(
            say(
                "hints are JSON and nothing else: this Celery app also accepts {others}. Set"
                " accept_content=['json'], or give retoma a Celery app of its own",
                others=", ".join(sorted(accepted - {"json", "application/json"})),
            )
        )
    if conf.task_compression:
        raise BadInput(
            say(
                "hints are not packed: task_compression={how!r} of this Celery app must go, or"
                " give retoma a Celery app of its own",
                how=conf.task_compression,
            )
        )
    if again <= 0 or tick <= 0 or tick > again:
        raise BadInput(
            say(
                "again and tick are seconds, longer than nothing, and a job is hinted again no"
                " sooner than the next tick: again={again!r}, tick={tick!r}",
                again=again,
                tick=tick,
            )
        )
