"""Wake up runners through Celery: each message is a hint (queue, job); the database keeps all state.

    celery_app = Celery("project", broker="redis://…")
    dispatcher = CeleryDispatcher(celery_app, app)

A task claims the hinted job as a runner would, runs its handler and settles it. It returns at once if
another process holds the job. Celery Beat sends the leader tasks, so Celery workers need no retoma
runners, but may run beside them. Lost, late, duplicate or reordered messages do no harm.
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
from retoma.dispatch.embedded_runner import EmbeddedRunner, RetomaApp
from retoma.dispatch.message import RUN, IgnoreReason, read_hint, read_number
from retoma.dispatch.sender import WAITING, Sender
from retoma.dispatch.shared_state import SharedState
from retoma.engine.log import get_logger
from retoma.engine.ops.leader_tasks import Duty
from retoma.engine.rules.errors import BadInput
from retoma.engine.run.hinted import Heeded, HintedRunner, Leaving
from retoma.engine.store.hints import Again, Hint
from retoma.words import say

QUEUE = "retoma"
REHINT = 30.0  # seconds until a waiting job is hinted again: half a lease
TICK = 5.0  # seconds between two ticks, as of a runner
HOUR = 3_600.0
DEPTH = 10_000  # messages in the broker from which on no hints are sent
FEW = 1_000  # messages in the broker from which on no hints are repeated
ALONE = ("prefork", "solo")  # pools whose processes run one task at a time
# Without timeouts a Redis socket may hang for ever.
IMPATIENT = {"socket_connect_timeout": 2.0, "socket_timeout": 5.0, "max_retries": 1}

RECOVER, HINT_AGAIN = "retoma.recover", "retoma.hint_again"
FOLD, SCHEDULES, RETENTION = "retoma.fold", "retoma.schedules", "retoma.retention"
# Task names of seed 000. Both recover the jobs of dead runners, never those of live ones.
STUCK, OLD = "recover_stuck_quotes", "cleanup_old_processing"
DUTIES = frozenset({RECOVER, HINT_AGAIN, FOLD, SCHEDULES, RETENTION, STUCK, OLD})

# Finds the job of an application's own id.
Find = Callable[[Transaction, int], Hint | None]

log = get_logger("retoma.dispatch")


class ZonedCrontab(crontab):  # type: ignore[misc]
    """A crontab in a given time zone, independent of the Celery app's zone."""

    def __init__(self, zone: str, **fields: Any) -> None:
        super().__init__(**fields)
        self._zone = zone
        self._fields = fields
        self.tz = ZoneInfo(zone)  # overrides the zone of the Celery app

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._fields), (self._zone,)


class CeleryDispatcher:
    """Sends hints of ready jobs to Celery, and runs the jobs in Celery workers.

    `queue`: the broker queue for hints and leader tasks only; start workers with `-Q retoma`.
    `tick`: seconds between two runs of the leader tasks, and until a new job that waits is hinted again.
    `rehint`: seconds after which a job that still waits is hinted again.
    `options`: options of the runner in each worker process, as `app.run` takes them.
    """

    most = WAITING

    def __init__(
        self,
        celery_app: Celery,
        retoma_app: RetomaApp,
        *,
        queue: str = QUEUE,
        rehint: float = REHINT,
        tick: float = TICK,
        **options: Any,
    ) -> None:
        _check(celery_app, rehint=rehint, tick=tick)
        self._celery = celery_app
        self._app = retoma_app
        self._queue = queue
        self._rehint = rehint
        self._tick = tick
        self._runner_options = options
        self._shared: SharedState | None = None
        self._worker: Any = None
        self._embedded: tuple[int, EmbeddedRunner] | None = None
        self._done: dict[str, float] = {}
        self._exported: dict[str, Find] = {}
        self._extensions: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {}
        self._sender = Sender(self._send)
        self._link: tuple[int, Any] | None = None
        self._run = self._task(RUN, self._process_message)
        self._register()
        retoma_app.dispatcher = self

    def export(self, name: str, find: Find) -> Any:
        """Make a Celery task that takes an application's own id: `name.delay(42)` hints the job that
        `find` returns for it. If `find` returns None, the message is ignored."""
        self._exported[name] = find
        self._route(name)
        return self._task(name, partial(self._process_number, find))

    def extend_task(self, name: str, run: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Call `run` whenever Beat sends the leader task `name`."""
        self._extensions[name] = run

    def hint(self, hints: Sequence[Hint]) -> None:
        self._sender.put(hints)

    def flush(self, seconds: float) -> bool:
        """Wait until every hint is sent or dropped; False if that takes longer than `seconds`."""
        return self._sender.flush(seconds)

    def close(self) -> None:
        self._sender.close()

    @property
    def beat_schedule(self) -> dict[str, dict[str, Any]]:
        """The leader tasks that Beat must send. They are in the Celery app's schedule already; include
        them if you replace `beat_schedule`."""
        periods = {
            **dict.fromkeys((RECOVER, HINT_AGAIN, FOLD, SCHEDULES), self._tick),
            RETENTION: HOUR,
            STUCK: crontab(minute="*/5"),
            OLD: ZonedCrontab(self._app.timezone, hour="4", minute="0"),
        }
        options = {"queue": self._queue, "ignore_result": True, "serializer": "json"}
        return {
            name: {"task": name, "schedule": period, "options": options}
            for name, period in periods.items()
        }

    def _send(self, hints: Sequence[Hint]) -> None:
        try:
            with self._connect().Producer() as producer:
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
        """Count the messages of our queue in the broker."""
        try:
            with self._connect().channel() as channel:
                count: int = channel.queue_declare(self._queue, passive=True).message_count
        except self._connect().channel_errors:
            return 0  # the queue does not exist yet
        except BaseException:
            self._disconnect()
            raise
        return count

    def _connect(self) -> Any:
        """Return this process's connection to the broker; open it if needed."""
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

    def _process_message(self, *args: Any, **kwargs: Any) -> None:
        hint = read_hint(args, kwargs)
        if hint is None:
            self._ignore(IgnoreReason.SHAPE, repr((args, kwargs))[:100])
        else:
            self._process_hint(hint)

    def _process_number(self, find: Find, *args: Any, **kwargs: Any) -> None:
        number = read_number(args, kwargs)
        if number is None:
            self._ignore(IgnoreReason.SHAPE, repr((args, kwargs))[:100])
            return
        with _ErrorsIgnored(RUN):
            hint = self._process_runner().ask(lambda _: self._find_hint(find, number))
            if hint is None:
                self._ignore(IgnoreReason.UNKNOWN, str(number))
            else:
                self._process_hint(hint)

    async def _find_hint(self, find: Find, number: int) -> Hint | None:
        return await (await self._app.database()).read(lambda tx: find(tx, number))

    def _process_hint(self, hint: Hint) -> None:
        with _ErrorsIgnored(RUN):
            heeded = self._process_runner().run(lambda runner: runner.heed(hint), hint)
            if heeded is Heeded.UNKNOWN:
                self._ignore(IgnoreReason.UNKNOWN, f"{hint.queue} {hint.job}")
            elif heeded is Heeded.MADE_ROOM:
                self._hint_ready(1, hint.queue)

    def _hint_again(self) -> None:
        depth = self._depth()
        self._hint_ready(DEPTH - depth, repeat=depth < FEW)

    def _hint_ready(self, most: int, queue: str | None = None, *, repeat: bool = True) -> None:
        if most > 0:
            limits = Again(after=self._rehint, young=self._tick, most=most, repeat=repeat)
            ready = self._process_runner().ask(lambda runner: runner.hint_again(limits, queue))
            self._send(ready)

    def _recover(self) -> None:
        self._process_runner().ask(HintedRunner.recover)

    def _run_leader_tasks(self, *tasks: Duty) -> None:
        for task in tasks:
            self._process_runner().ask(partial(HintedRunner.do, duty=task))

    def _process_runner(self) -> EmbeddedRunner:
        """Return this process's runner; start it if needed."""
        if self._embedded is None or self._embedded[0] != os.getpid():
            options = {
                "slots": self._slots(),
                "name": self._worker_name(),
                **self._runner_options,
            }
            self._embedded = (
                os.getpid(),
                EmbeddedRunner(self._app, self._shared_state(), options),
            )
        return self._embedded[1]

    def _slots(self) -> int:
        pool = getattr(self._worker, "pool_cls", "")
        name = pool if isinstance(pool, str) else pool.__module__.rpartition(".")[2]
        return int(self._worker.concurrency) if name and name not in ALONE else 1

    def _worker_name(self) -> str:
        """Return Celery's name of this worker (`celery@host`), so that both systems show the same name."""
        return str(getattr(self._worker, "hostname", None) or "celery")

    def _ignore(self, reason: IgnoreReason, excerpt: str) -> None:
        """Log an ignored message; each reason once per worker."""
        if self._shared_state().take_warning(reason):
            log.warning("hint.ignored", bad=reason, seen=excerpt)

    def _register(self) -> None:
        tasks: dict[str, Callable[[], None]] = {
            RECOVER: self._recover,
            STUCK: self._recover,
            OLD: self._recover,
            HINT_AGAIN: self._hint_again,
            FOLD: partial(self._run_leader_tasks, Duty.FOLD, Duty.FILL),
            SCHEDULES: partial(self._run_leader_tasks, Duty.SCHEDULE),
            RETENTION: partial(self._run_leader_tasks, Duty.RETENTION),
        }
        for name, run in tasks.items():
            self._task(name, partial(self._run_task, name, run))
        conf = self._celery.conf
        conf.beat_schedule = {**self.beat_schedule, **(conf.beat_schedule or {})}
        conf.worker_consumer = strict_consumer(
            conf.worker_consumer, self._queue, DUTIES, self._ignore, self._exported
        )
        signals.worker_init.connect(self._on_worker_start, weak=False)
        signals.worker_shutting_down.connect(self._on_worker_leaving, weak=False)
        signals.worker_process_shutdown.connect(self._on_process_end, weak=False)
        signals.worker_shutdown.connect(self._on_process_end, weak=False)

    def _route(self, name: str) -> None:
        """Send messages of this task to our queue."""
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
            shared=False,  # only for this Celery app
            ignore_result=True,
            serializer="json",
            typing=False,
            acks_late=False,
        )(task)

    def _run_task(self, name: str, run: Callable[[], None], *args: Any, **kwargs: Any) -> None:
        """Run a leader task at most once per half tick, so that messages that piled up run it once."""
        now = self._app.clock.now()
        if args or kwargs:
            self._ignore(IgnoreReason.SHAPE, repr((args, kwargs))[:100])
        elif now - self._done.get(name, -HOUR) >= self._tick / 2:
            self._done[name] = now
            with _ErrorsIgnored(name):
                run()
                if name in self._extensions:
                    self._process_runner().ask(lambda _: self._extensions[name]())

    def _on_worker_start(self, sender: Any = None, **_: Any) -> None:
        if sender.app is self._celery:
            self._worker = sender
            self._shared_state()

    def _on_worker_leaving(self, **_: Any) -> None:
        if self._shared is not None:
            self._shared.signal_leaving()

    def _on_process_end(self, **_: Any) -> None:
        if self._embedded is not None and self._embedded[0] == os.getpid():
            self._embedded[1].leave()
            self._embedded = None
        self._sender.close()

    def _shared_state(self) -> SharedState:
        if self._shared is None:
            self._shared = SharedState()
        return self._shared


class _ErrorsIgnored:
    """Logs database and broker errors instead of raising them to Celery: the job is hinted again."""

    def __init__(self, task: str) -> None:
        self._task = task

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, DatabaseError | OperationalError | OSError):
            log.warning("hint.not_heeded", task=self._task, error=str(error))
            return True
        return isinstance(error, Leaving)


def _check(celery_app: Celery, *, rehint: float, tick: float) -> None:
    conf = celery_app.conf
    accepted = set(conf.accept_content or ())
    if not accepted <= {"json", "application/json"}:
        raise BadInput(
            say(
                "this Celery app accepts {others}, but hints must be JSON only. Set"
                " accept_content=['json'], or give retoma a Celery app of its own",
                others=", ".join(sorted(accepted - {"json", "application/json"})),
            )
        )
    if conf.task_compression:
        raise BadInput(
            say(
                "hints cannot be compressed: remove task_compression={how!r} from this Celery"
                " app, or give retoma a Celery app of its own",
                how=conf.task_compression,
            )
        )
    if rehint <= 0 or tick <= 0 or tick > rehint:
        raise BadInput(
            say(
                "rehint and tick must be positive, and tick must not exceed rehint:"
                " rehint={rehint!r}, tick={tick!r} seconds",
                rehint=rehint,
                tick=tick,
            )
        )
