"""What is compared with what, how much of it, and the bars of the design it must reach."""

from dataclasses import dataclass

from bench import floor, ours
from bench.compare import FLOOR, AtLeast, AtMost, Comparison, Row
from bench.latency import Pace
from bench.peers import peer_dbos, peer_huey, peer_pgqueuer

PGQUEUER, HUEY, DBOS = peer_pgqueuer.NAME, peer_huey.NAME, peer_dbos.NAME
SLOTS = 1000  # jobs at a time in one runner, and rows in a statement of the floor
CALLERS = 100  # that submit at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is done in one round, and how many rounds. Slow peers do less: theirs are rates too."""

    rounds: int
    drained: int
    drained_by_huey: int
    bulk: int
    singles: int
    stepped: int
    workflows: int
    latency_rounds: int


QUICK = Scale(
    rounds=3,
    drained=20_000,
    drained_by_huey=4_000,
    bulk=50_000,
    singles=1_000,
    stepped=3_000,
    workflows=60,
    latency_rounds=2,
)
FULL = Scale(
    rounds=5,
    drained=100_000,
    drained_by_huey=10_000,
    bulk=200_000,
    singles=3_000,
    stepped=10_000,
    workflows=300,
    latency_rounds=5,
)


def comparisons(scale: Scale) -> list[Comparison]:
    return [
        *drains(scale),
        *enqueues(scale),
        *steps(scale),
        *latencies(scale),
        heartbeats(),
        *start_ups(),
    ]


def drains(scale: Scale) -> list[Comparison]:
    jobs = scale.drained
    return [
        Comparison(
            rows=(
                Row(
                    "drain_postgres_1", "jobs/s", (AtLeast(1.2, PGQUEUER), AtLeast(0.7, FLOOR))
                ),
            ),
            ours=ours.drain(ours.on_postgres, jobs, 1, SLOTS),
            floor=floor.floor_drain_postgres(jobs, SLOTS),
            peers={PGQUEUER: peer_pgqueuer.drain(jobs, 1)},
            rounds=scale.rounds,
        ),
        Comparison(
            rows=(Row("drain_postgres_2", "jobs/s", (AtLeast(1.5, PGQUEUER),)),),
            ours=ours.drain(ours.on_postgres, jobs, 2, SLOTS),
            peers={PGQUEUER: peer_pgqueuer.drain(jobs, 2)},
            rounds=scale.rounds,
        ),
        Comparison(
            rows=(Row("drain_sqlite", "jobs/s", (AtLeast(5, HUEY),)),),
            ours=ours.drain(ours.on_sqlite, jobs, 1, SLOTS),
            floor=floor.floor_drain_sqlite(jobs, SLOTS),
            peers={HUEY: peer_huey.drain(scale.drained_by_huey)},
            rounds=scale.rounds,
        ),
    ]


def enqueues(scale: Scale) -> list[Comparison]:
    """Only the bulk has a bar; single ones are bound by one commit each, whoever writes them."""
    bulk, singles = scale.bulk, scale.singles
    return [
        Comparison(
            rows=(Row("enqueue_bulk_postgres", "jobs/s", (AtLeast(2, PGQUEUER),)),),
            ours=ours.enqueue_bulk(ours.on_postgres, bulk),
            peers={PGQUEUER: peer_pgqueuer.enqueue_bulk(bulk)},
            rounds=scale.rounds,
        ),
        Comparison(
            rows=single_rows("postgres"),
            ours=ours.enqueue_singles(ours.on_postgres, singles, CALLERS),
            peers={PGQUEUER: peer_pgqueuer.enqueue_singles(singles, CALLERS)},
            rounds=scale.rounds,
        ),
        Comparison(
            rows=single_rows("sqlite"),
            ours=ours.enqueue_singles(ours.on_sqlite, singles, CALLERS),
            peers={HUEY: peer_huey.enqueue_singles(singles, peer_huey.CALLERS)},
            rounds=scale.rounds,
        ),
    ]


def single_rows(database: str) -> tuple[Row, Row]:
    return (
        Row(f"enqueue_single_{database}", "jobs/s"),
        Row(f"enqueue_concurrent_{database}", "jobs/s"),
    )


def steps(scale: Scale) -> list[Comparison]:
    return [
        Comparison(
            rows=(Row("steps_postgres", "steps/s", (AtLeast(100, DBOS),)),),
            ours=ours.steps(ours.on_postgres, scale.stepped, SLOTS),
            peers={DBOS: peer_dbos.steps_postgres(scale.workflows)},
            rounds=scale.rounds,
        ),
        Comparison(
            rows=(Row("steps_sqlite", "steps/s", (AtLeast(100, DBOS),)),),
            ours=ours.steps(ours.on_sqlite, scale.stepped, SLOTS),
            peers={DBOS: peer_dbos.steps_sqlite(scale.workflows)},
            rounds=scale.rounds,
        ),
    ]


def latencies(scale: Scale) -> list[Comparison]:
    pace = Pace()
    return [
        Comparison(
            rows=latency_rows("postgres"),
            ours=ours.latency(ours.on_postgres, pace),
            peers={PGQUEUER: peer_pgqueuer.latency(pace)},
            rounds=scale.latency_rounds,
        ),
        Comparison(
            rows=latency_rows("sqlite"),
            ours=ours.latency(ours.on_sqlite, pace),
            peers={HUEY: peer_huey.latency(pace)},
            rounds=scale.latency_rounds,
        ),
    ]


def latency_rows(database: str) -> tuple[Row, Row]:
    return (
        Row(f"latency_{database}_p50", "ms", (AtMost(3),)),
        Row(f"latency_{database}_p99", "ms", (AtMost(10),)),
    )


def heartbeats() -> Comparison:
    return Comparison(
        rows=(Row("heartbeat_10000_running", "writes/beat", (AtMost(1),)),),
        ours=ours.beats(10_000),
        rounds=1,
    )


def start_ups() -> list[Comparison]:
    return [
        Comparison(
            rows=(Row("startup_help", "s", (AtMost(0.4),)),), ours=ours.help_seconds, rounds=3
        ),
        Comparison(
            rows=(Row("startup_demo", "s", (AtMost(2),)),), ours=ours.demo_seconds, rounds=3
        ),
    ]
