"""What is compared with what, how much of it, and the bars of the design it must reach."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench import (
    ads_missions,
    ads_writer,
    api,
    blocked,
    documents,
    embeddings,
    floor,
    history,
    machines,
    matches,
    memory,
    ours,
    over_celery,
    quotes,
    reach,
    recall,
    reclaim,
    sustained,
    two_commits,
)
from bench.compare import FLOOR, AtLeast, AtMost, Comparison, Measure, NoLess, Row
from bench.latency import Pace
from bench.ours import Address
from bench.peers import (
    peer_absurd,
    peer_celery,
    peer_dbos,
    peer_huey,
    peer_pgqueuer,
    peer_procrastinate,
)

PGQUEUER, HUEY, DBOS = peer_pgqueuer.NAME, peer_huey.NAME, peer_dbos.NAME
SLOTS = 1000  # jobs at a time in one runner, and rows in a statement of the floor
CALLERS = 100  # that submit at the same time
SLOW_BULK = 10_000  # jobs in bulk for a peer that takes long: a rate too
PLACES: Mapping[str, Address] = {"postgres": ours.on_postgres, "sqlite": ours.on_sqlite}
LONGER = "times as long"  # a unit: the same with much of something, by the same with little
GROWTH = 1.3  # and no more, whatever stands behind or before
KEPT = 0.85  # of its pace
THINGS = reach.THINGS  # in a pool, and jobs at a time
QUOTES_AT_ONCE = 400  # in one runner
LEASE = 60  # seconds, as it is unless somebody says otherwise
IDLE = 30  # statements a minute of a runner with nothing to do


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
    every_peer: bool
    drained_by_slow_peers: int
    history: tuple[int, int]  # jobs in the small one and in the large one
    samples: int  # of each question to them
    sustained: int
    blocked: int
    submitted: int  # at once, for its memory
    long_rounds: int
    reclaim_rounds: int
    machine_rounds: int
    rated: int
    pooled: int
    polled: int  # jobs with remote work, each asked after several times
    idle: float  # seconds for which a runner with nothing to do is watched
    hinted: int  # jobs that Celery wakes
    ads: int  # in one document for the writer
    missions: tuple[int, int]  # of few workers, and of many
    quotes: tuple[int, int]  # answered at once, and as slowly as the document says
    documents: tuple[int, int]  # of a page or two, and of thirty
    matches: int  # rounds of ten
    embeddings: tuple[int, int]  # documents of six chunks, and vectors that are searched


QUICK = Scale(
    rounds=3,
    drained=20_000,
    drained_by_huey=4_000,
    bulk=50_000,
    singles=1_000,
    stepped=3_000,
    workflows=60,
    latency_rounds=2,
    every_peer=False,
    drained_by_slow_peers=0,
    history=(2_000, 20_000),
    samples=30,
    sustained=50_000,
    blocked=10_000,
    submitted=100_000,
    long_rounds=1,
    reclaim_rounds=1,
    machine_rounds=1,
    rated=5_000,
    pooled=1_000,
    polled=300,
    idle=20.0,
    hinted=1_000,
    ads=50_000,
    missions=(100, 400),
    quotes=(400, 600),
    documents=(400, 100),
    matches=12,
    embeddings=(400, 100_000),
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
    every_peer=True,
    drained_by_slow_peers=2_000,
    history=(10_000, 1_000_000),
    samples=100,
    sustained=500_000,
    blocked=100_000,
    submitted=100_000,
    long_rounds=1,
    reclaim_rounds=3,
    machine_rounds=3,
    rated=50_000,
    pooled=10_000,
    polled=3_000,
    idle=60.0,
    hinted=5_000,
    ads=1_000_000,
    missions=(400, 2_000),
    quotes=(1_000, 2_000),
    documents=(2_000, 400),
    matches=36,
    embeddings=(2_000, 100_000),
)


def comparisons(scale: Scale) -> list[Comparison]:
    return [
        *drains(scale),
        *enqueues(scale),
        *steps(scale),
        *latencies(scale),
        *growths(scale),
        *api_growths(scale),
        *blocked_claims(scale),
        *sustained_drains(scale),
        *memories(scale),
        *reclaims(scale),
        *reaches(scale),
        *over_brokers(scale),
        *writers(scale),
        *missions(scale),
        *lotes(scale),
        *classified(scale),
        *scraped(scale),
        *embedded(scale),
        *machines.comparisons(scale.drained, scale.stepped, SLOTS, scale.machine_rounds),
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
            peers={PGQUEUER: peer_pgqueuer.drain(jobs, 1), **slow_drains(scale, 1)},
            rounds=scale.rounds,
        ),
        Comparison(
            rows=(Row("drain_postgres_2", "jobs/s", (AtLeast(1.5, PGQUEUER),)),),
            ours=ours.drain(ours.on_postgres, jobs, 2, SLOTS),
            peers={PGQUEUER: peer_pgqueuer.drain(jobs, 2), **slow_drains(scale, 2)},
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


def slow_drains(scale: Scale, processes: int) -> dict[str, Measure]:
    """The others, in the full run: none of them is near a bar, and all of them take long."""
    if not scale.every_peer:
        return {}
    jobs = scale.drained_by_slow_peers
    together = {peer_procrastinate.NAME: peer_procrastinate.drain(jobs, processes)}
    alone = {
        peer_celery.NAME: peer_celery.drain(jobs),
        peer_absurd.NAME: peer_absurd.drain(jobs),
    }
    return {**together, **(alone if processes == 1 else {})}


def enqueues(scale: Scale) -> list[Comparison]:
    """Only the bulk has a bar; single ones are bound by one commit each, whoever writes them."""
    bulk, singles = scale.bulk, scale.singles
    return [
        Comparison(
            rows=(Row("enqueue_bulk_postgres", "jobs/s", (AtLeast(2, PGQUEUER),)),),
            ours=ours.enqueue_bulk(ours.on_postgres, bulk),
            peers={
                PGQUEUER: peer_pgqueuer.enqueue_bulk(bulk),
                **in_full(
                    scale, peer_procrastinate.NAME, peer_procrastinate.enqueue_bulk(bulk)
                ),
            },
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
            peers={
                DBOS: peer_dbos.steps_postgres(scale.workflows),
                **in_full(scale, peer_absurd.NAME, peer_absurd.steps(scale.workflows)),
            },
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
            floor=two_commits.on_postgres(pace),
            peers={
                PGQUEUER: peer_pgqueuer.latency(pace),
                **in_full(scale, peer_procrastinate.NAME, peer_procrastinate.latency(pace)),
                **in_full(scale, peer_celery.NAME, peer_celery.latency(pace)),
            },
            rounds=scale.latency_rounds,
        ),
        Comparison(
            rows=latency_rows("sqlite"),
            ours=ours.latency(ours.on_sqlite, pace),
            floor=two_commits.on_sqlite(pace),
            peers={HUEY: peer_huey.latency(pace)},
            rounds=scale.latency_rounds,
        ),
    ]


def latency_rows(database: str) -> tuple[Row, Row]:
    return (
        Row(f"latency_{database}_p50", "ms", (AtMost(3),)),
        Row(f"latency_{database}_p99", "ms", (AtMost(10),)),
    )


def in_full(scale: Scale, name: str, measure: Measure) -> dict[str, Measure]:
    return {name: measure} if scale.every_peer else {}


def growths(scale: Scale) -> list[Comparison]:
    small, large = scale.history
    return [
        Comparison(
            rows=tuple(
                Row(f"growth_{question}_{make}", LONGER, (AtMost(GROWTH),))
                for question in history.QUESTIONS
            ),
            ours=history.growth(make, small, large, scale.samples),
            rounds=scale.long_rounds,
        )
        for make in PLACES
    ]


def api_growths(scale: Scale) -> list[Comparison]:
    small, large = scale.history
    return [
        Comparison(
            rows=tuple(
                Row(f"api_{question}_{make}", LONGER, (AtMost(GROWTH),))
                for question in api.QUESTIONS
            ),
            ours=api.growth(make, small, large, scale.samples),
            rounds=scale.long_rounds,
        )
        for make in PLACES
    ]


def blocked_claims(scale: Scale) -> list[Comparison]:
    return [
        Comparison(
            rows=(
                Row(
                    f"claim_behind_{wall}_{make}",
                    LONGER,
                    () if wall == blocked.SHARED else (AtMost(GROWTH),),
                ),
            ),
            ours=blocked.behind(make, wall, scale.blocked, scale.samples),
            rounds=scale.long_rounds,
        )
        for make in PLACES
        for wall in (*blocked.WALLS, blocked.SHARED)
    ]


def sustained_drains(scale: Scale) -> list[Comparison]:
    return [
        Comparison(
            rows=(
                Row(f"sustained_{make}{name}", "last/first tenth", (NoLess(KEPT),)),
                Row(f"sustained_rate_{make}{name}", "jobs/s"),
            ),
            ours=sustained.drain(at, scale.sustained, SLOTS, old_snapshot=bool(name)),
            rounds=scale.long_rounds,
        )
        for make, at in PLACES.items()
        for name in ("", "_old_snapshot")
    ]


def memories(scale: Scale) -> list[Comparison]:
    return [
        Comparison(
            rows=(
                Row(f"memory_idle_{make}", "MB", (AtMost(120),)),
                Row(f"memory_submit_{make}", "MB", (AtMost(300),)),
            ),
            ours=memory.memory(at, SLOTS, scale.submitted),
            rounds=scale.long_rounds,
        )
        for make, at in PLACES.items()
    ]


def reclaims(scale: Scale) -> list[Comparison]:
    return [
        *(
            Comparison(
                rows=(Row(f"reclaim_same_host_{make}", "s", (AtMost(2),)),),
                ours=reclaim.reclaim(at, CALLERS),
                rounds=scale.reclaim_rounds,
            )
            for make, at in PLACES.items()
        ),
        Comparison(
            rows=(Row("reclaim_other_host_postgres", "s", (AtMost(LEASE + 5),)),),
            ours=reclaim.reclaim(ours.on_postgres, CALLERS, host="another"),
            rounds=scale.long_rounds,
        ),
    ]


def reaches(scale: Scale) -> list[Comparison]:
    """Each database: with a rate in force, with a pool of a hundred, parked polls, doing nothing."""
    return [
        Comparison(rows=(row,), ours=measure, rounds=scale.long_rounds)
        for make, at in PLACES.items()
        for row, measure in (
            (Row(f"rate_{make}", "jobs/s"), reach.drain(at, "rated", scale.rated, SLOTS)),
            (Row(f"pool_{make}", "jobs/s"), reach.drain(at, "pooled", scale.pooled, THINGS)),
            (Row(f"polls_{make}", "polls/s"), reach.polls(at, scale.polled, SLOTS)),
            (
                Row(f"idle_{make}", "statements/min", (AtMost(IDLE),)),
                reach.idle(at, scale.idle),
            ),
        )
    ]


def over_brokers(scale: Scale) -> list[Comparison]:
    """Celery wakes our jobs, beside Celery whose messages are the jobs. No bar: two commits of a
    database for each job stand against none."""
    jobs = scale.hinted
    return [
        Comparison(
            rows=(Row(f"celery_{make}", "jobs/s"),),
            ours=over_celery.drain(at, jobs),
            peers={peer_celery.NAME: peer_celery.drain(jobs)},
            rounds=scale.long_rounds,
        )
        for make, at in PLACES.items()
    ]


def missions(scale: Scale) -> list[Comparison]:
    """The ads orchestrator, where whoever it commands answers at once."""
    few, many = scale.missions
    return [
        *(
            Comparison(
                rows=(
                    Row(f"ads_mission_{make}", "ms of CPU", (AtMost(50),)),
                    Row(f"ads_mission_{make}_clock", "ms"),
                ),
                ours=ads_missions.overhead(address, workers=4, missions=few),
                rounds=1,
            )
            for make, address in PLACES.items()
        ),
        Comparison(
            rows=(
                Row("ads_200_workers_postgres", "missions/s"),
                Row("ads_200_workers_memory", "MB"),
            ),
            ours=ads_missions.fleet(ours.on_postgres, workers=200, missions=many),
            rounds=1,
        ),
    ]


def lotes(scale: Scale) -> list[Comparison]:
    """Quotes by one runner of 400 slots; the services of the sandbox have a process of their own."""
    few, many = scale.quotes
    return [
        Comparison(
            rows=(
                Row("quotes_instant_postgres", "quotes/s"),
                Row("quotes_instant_cpu", "ms of CPU"),
            ),
            ours=quotes.at_once(ours.on_postgres, few, slots=QUOTES_AT_ONCE),
            rounds=1,
        ),
        Comparison(
            rows=(
                Row("quotes_ideal_share_postgres", "% of ideal", (NoLess(90),)),
                Row("quotes_ideal_connections", "connections"),
                Row("quotes_ideal_memory", "MB"),
                Row("quotes_ideal_rate", "quotes/s"),
            ),
            ours=quotes.near_ideal(
                ours.on_postgres, many, QUOTES_AT_ONCE, pace=quotes.DOCUMENT
            ),
            rounds=1,
        ),
        Comparison(
            rows=(
                Row("quotes_hurried_share_postgres", "% of ideal"),
                Row("quotes_hurried_connections", "connections"),
                Row("quotes_hurried_memory", "MB"),
                Row("quotes_hurried_rate", "quotes/s"),
            ),
            ours=quotes.near_ideal(ours.on_postgres, many, QUOTES_AT_ONCE, pace=1),
            rounds=1,
        ),
    ]


def classified(scale: Scale) -> list[Comparison]:
    """Documents with an instant model, beside a bare process pool that does nothing but read the same files."""
    few, many = scale.documents[1], scale.documents[0]
    return [
        *(
            Comparison(
                rows=(
                    Row(f"documents_{name}_{make}", "documents/s", (AtLeast(0.8, FLOOR),)),
                    Row(f"documents_{name}_{make}_memory", "MB", (AtMost(300),)),
                    Row(f"documents_{name}_{make}_cpu", "ms of CPU"),
                ),
                ours=documents.in_house(address, n, pages),
                floor=documents.in_pool(n, pages),
                rounds=scale.long_rounds,
            )
            for make, address in PLACES.items()
            for name, n, pages in (("short", many, 0), ("thirty_pages", few, 30))
        ),
        Comparison(
            rows=(
                Row("documents_children", "documents/s", (AtLeast(0.8, FLOOR),)),
                Row("documents_children_memory", "MB"),
                Row("documents_children_cpu", "ms of CPU"),
            ),
            ours=documents.in_children(many, 0),
            floor=documents.in_pool(many, 0),
            rounds=scale.long_rounds,
        ),
    ]


def scraped(scale: Scale) -> list[Comparison]:
    """Rounds from an instant site, beside a bare script that fetches, reads and stores the same."""
    return [
        Comparison(
            rows=(
                Row(f"matches_{make}", "matches/s", (AtLeast(0.6, FLOOR),)),
                Row(f"matches_{make}_cpu", "ms of CPU"),
            ),
            ours=matches.in_house(address, scale.matches),
            floor=matches.by_script(make, scale.matches),
            rounds=scale.rounds,
        )
        for make, address in PLACES.items()
    ]


def embedded(scale: Scale) -> list[Comparison]:
    """Texts by our own n-grams, beside a bare loop over the same provider that stores the same; and search."""
    documents, vectors = scale.embeddings
    return [
        *(
            Comparison(
                rows=(
                    Row(f"embeddings_{make}_{processes}", "chunks/s", (AtLeast(0.7, FLOOR),)),
                ),
                ours=embeddings.in_house(address, documents, processes),
                floor=embeddings.by_loop(make, documents, processes),
                rounds=scale.rounds,
            )
            for make, address in PLACES.items()
            for processes in (1, 2)
        ),
        Comparison(
            rows=(Row("embeddings_provider_alone", "chunks/s"),),
            ours=embeddings.alone(documents),
            rounds=1,
        ),
        *(
            Comparison(
                rows=(Row(f"embeddings_twice_{make}", "% of texts", (AtMost(50),)),),
                ours=embeddings.half_repeats(address, documents // 2),
                rounds=1,
            )
            for make, address in PLACES.items()
        ),
        *(
            Comparison(
                rows=(
                    Row(f"search_{make}", "ms", (AtMost(50),)),
                    Row(f"search_{make}_p99", "ms"),
                    Row(f"search_{make}_first", "ms"),
                    Row(f"search_{make}_memory", "MB"),
                ),
                ours=embeddings.search(address, vectors, questions=200),
                rounds=1,
            )
            for make, address in PLACES.items()
        ),
        *(
            Comparison(
                rows=(
                    Row(f"recall_plain_{make}", "% in 5"),
                    Row(f"recall_hybrid_{make}", "% in 5", (NoLess(85),)),
                ),
                ours=recall.recall(address),
                rounds=1,
            )
            for make, address in PLACES.items()
        ),
    ]


def writers(scale: Scale) -> list[Comparison]:
    """The writer, with all it checks and keeps, beside one COPY and one upsert of the same file."""
    return [
        Comparison(
            rows=(
                Row("ads_writer_postgres", "rows/s", (AtLeast(0.6, FLOOR),)),
                Row("ads_writer_memory", "MB", (AtMost(200),)),
            ),
            ours=ads_writer.writer(scale.ads),
            floor=ads_writer.plain(scale.ads),
            rounds=scale.long_rounds,
        )
    ]


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
