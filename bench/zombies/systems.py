"""The systems of the board: how each is set up, and why it does what it does, by its own documents."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from bench.places import Places
from bench.zombies.director import Side

DATABASE = "zombies"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One row of the board. `package` is what has to be installed; `ours` is judged strictly."""

    name: str
    package: str
    make: Callable[[Places], Any]
    settings: str
    why: str
    ours: bool = False

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None

    @contextmanager
    def opened(self, places: Places) -> Iterator[Side]:
        """Set it up in an empty database, and close what was opened."""
        side = self.make(places)
        try:
            yield side
        finally:
            side.close()


def _ours_on_postgres(places: Places) -> Any:
    from bench.zombies.side_ours import Ours

    return Ours(places.postgres(DATABASE))


def _ours_on_sqlite(places: Places) -> Any:
    from bench.zombies.side_ours import Ours

    return Ours(f"sqlite:///{places.file(DATABASE)}")


def _procrastinate(places: Places) -> Any:
    from bench.zombies.side_procrastinate import Procrastinate

    return Procrastinate(places.postgres(DATABASE))


def _pgqueuer(places: Places) -> Any:
    from bench.zombies.side_pgqueuer import PgQueuerSide

    return PgQueuerSide(places.postgres(DATABASE))


def _dbos(places: Places) -> Any:
    from bench.zombies.side_dbos import DbosSide

    return DbosSide(places.postgres(DATABASE))


OUR_SETTINGS = "lease 5 s, heartbeat 1 s, tick 1 s (defaults 60 s, 10 s, 5 s)"
OUR_WHY = (
    "Every write carries the epoch of its claim, and a claim that is over changes no row. A runner past its"
    " lease starts no further step. A killed process on the same machine is seen to be gone at"
    " once; on another machine its lease has to end first."
)

SYSTEMS = (
    System(
        name="retoma on PostgreSQL",
        package="retoma",
        make=_ours_on_postgres,
        settings=OUR_SETTINGS,
        why=OUR_WHY,
        ours=True,
    ),
    System(
        name="retoma on SQLite",
        package="retoma",
        make=_ours_on_sqlite,
        settings=OUR_SETTINGS,
        why="As on PostgreSQL.",
        ours=True,
    ),
    System(
        name="Procrastinate",
        package="procrastinate",
        make=_procrastinate,
        settings=(
            "`update_heartbeat_interval` 1 s (default 10 s), the periodic task of its how-to that retries"
            " stalled jobs, every second and for workers silent for 5 s (there every 10 minutes and 30 s),"
            " polling every second, `retry=3` where a job is retried"
        ),
        why=(
            "A job is ended and retried by its id as long as it is `doing`, whoever asks: nothing says whose"
            " claim it is. A job that has ended is safe. Recovery is a task of one's own,"
            " [as its how-to shows](https://procrastinate.readthedocs.io/en/stable/howto/production/retry_stalled_jobs.html)."
            " It has no steps and stores no result."
        ),
    ),
    System(
        name="PgQueuer",
        package="pgqueuer",
        make=_pgqueuer,
        settings=(
            "`heartbeat_timeout` 5 s (default 30 s), `dequeue_timeout` 1 s (default 30 s),"
            " `DatabaseRetryEntrypointExecutor` where a job is retried"
        ),
        why=(
            "Delivery at least once without fencing tokens is"
            " [a decision of its makers](https://github.com/janbjorge/pgqueuer/blob/main/docs/adr/ADR-0004-delivery-is-at-least-once.md):"
            " entrypoints have to be idempotent. A worker that stalls"
            " [may still finish a job that was delivered again](https://github.com/janbjorge/pgqueuer/blob/main/docs/adr/ADR-0005-worker-liveness-is-application-signal.md),"
            " and its end is taken as the job's. It has no steps and stores no result."
        ),
    ),
    System(
        name="DBOS",
        package="dbos",
        make=_dbos,
        settings=(
            "an `executor_id` for each process, a queue polled every 0.5 s, effects in steps, step retries where a"
            " job is retried; the bench asks another executor to recover, 5 s after the fault"
        ),
        why=(
            "Checkpoints and outcomes carry the token of their execution, and"
            " [an execution that has been replaced is parked](https://docs.dbos.dev/explanations/concurrent-executions)."
            " A step that is retried runs again in its process before that is noticed. The library does not look"
            " for dead executors: [Conductor does](https://docs.dbos.dev/conductor/distributed-recovery), a"
            " service of its makers, after 60 s by default, or a restart under the same id."
        ),
    ),
)
