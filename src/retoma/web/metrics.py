"""What `/metrics` tells, and under which names. One reading of the database is one scrape.

Nothing is remembered between two of them: the totals are the database's, so it does not matter
which server is asked, nor when it was started. Only what is told of the process is its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from retoma.engine.query import Meter, RunnerSeen, Sum
from retoma.engine.rules.events import End
from retoma.engine.rules.money import Currency
from retoma.engine.rules.states import State
from retoma.engine.store.budget import BudgetSeen
from retoma.engine.store.cost import Total
from retoma.secret import redact_text

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
LONGEST: Final = 200  # characters of a label's value
MOST: Final = 1_000  # series of one name
CODES: Final = 50  # a code is whatever a story says
OTHER: Final = "other"  # what was more than that, together
NONE: Final = "none"
RECENT: Final = 3_600.0  # seconds for which a runner that is silent is still told of
NANOS: Final = 1e9
STANDS: Final = ("free", "held", "resting", "off")  # of a thing in a pool
BREAKER: Final = ("closed", "open", "probing")
RUNNER: Final = ("alive", "leaving", "gone", "lost")
# Buckets are powers of two of a millisecond: 16 ms to 70 minutes.
BOUNDS: Final = range(4, 23)
# What says how long work takes: a snooze or a release ends an attempt early.
LASTED: Final = {"done": ("done", "skipped"), "failed": ("failed", "buried")}

Values = Iterable[tuple[tuple[str, ...], float]]


class Sort(StrEnum):
    """What Prometheus calls a type."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Measure:
    """One name, and how its values are read off a meter."""

    name: str
    sort: Sort
    labels: tuple[str, ...]
    about: str
    read: Callable[[Meter], Values]
    most: int = MOST

    def family(self, meter: Meter) -> Metric:
        made = (
            CounterMetricFamily(self.name, self.about, labels=self.labels)
            if self.sort is Sort.COUNTER
            else GaugeMetricFamily(self.name, self.about, labels=self.labels)
        )
        for labels, value in self._bounded(self.read(meter)).items():
            made.add_metric(labels, value)
        return made

    def _bounded(self, told: Values) -> dict[tuple[str, ...], float]:
        values: dict[tuple[str, ...], float] = {}
        for labels, value in told:
            shown = tuple(_shown(each) for each in labels)
            if shown not in values and len(values) >= self.most:
                shown = (OTHER,) * len(self.labels)
            values[shown] = values.get(shown, 0.0) + value
        return values


def _shown(value: str) -> str:
    return redact_text(value)[:LONGEST] or NONE


# — how each is read off —


def _jobs(meter: Meter) -> Values:
    for kind in meter.kinds:
        for state in State:
            yield (kind, state), meter.jobs.get((kind, state), 0)


def _dead(meter: Meter) -> Values:
    by_number = sorted(meter.dead.items(), key=lambda each: (-each[1], each[0]))
    return (((code,), n) for code, n in by_number)


def _happened(*events: str) -> Callable[[Meter], Values]:
    def read(meter: Meter) -> Values:
        for kind in meter.kinds:
            yield (kind,), sum(meter.happened.get((kind, event), 0) for event in events)

    return read


def _attempts(meter: Meter) -> Values:
    for kind in meter.kinds:
        for end in End:
            yield (kind, end), meter.ended(kind, end)


def _recent(meter: Meter) -> Iterator[tuple[RunnerSeen, float]]:
    return (each for each in meter.runners if each[1] <= RECENT)


def _runner(read: Callable[[RunnerSeen, float], float]) -> Callable[[Meter], Values]:
    return lambda meter: (
        ((runner.name, runner.boot), read(runner, age)) for runner, age in _recent(meter)
    )


def _did(*events: str) -> Callable[[Meter], Values]:
    def read(meter: Meter) -> Values:
        for runner, _ in _recent(meter):
            did = (meter.did.get((runner.boot, event), Sum(0, 0.0)) for event in events)
            yield (runner.name, runner.boot), sum(each.n for each in did)

    return read


def _runners(meter: Meter) -> Values:
    for state in RUNNER:
        yield (state,), sum(1 for runner, _ in _recent(meter) if state == _stands(runner))


def _stands(runner: RunnerSeen) -> str:
    """One whose lease is over is lost, although nobody has said so yet."""
    return "lost" if runner.expired and runner.state in ("alive", "leaving") else runner.state


def _pools(meter: Meter) -> Values:
    for pool in sorted({pool for pool, _ in meter.pools}):
        for stands in STANDS:
            yield (pool, stands), meter.pools.get((pool, stands), 0)


def _breakers(meter: Meter) -> Values:
    for each in meter.breakers:
        for state in BREAKER:
            yield (each.name, state), float(each.state == state)


def _money(which: Callable[[Total, Total], Total]) -> Callable[[Meter], Values]:
    def read(meter: Meter) -> Values:
        for each in meter.costs:
            total = which(each.spent, each.saved)
            for currency, amount in ((Currency.USD, total.usd), (Currency.BRL, total.brl)):
                if amount:
                    yield (each.name, each.provider, currency), float(amount)

    return read


def _unpriced(meter: Meter) -> Values:
    for each in meter.costs:
        if each.spent.unpriced:
            yield (each.name, each.provider), each.spent.unpriced


def _budget(read: Callable[[BudgetSeen], float]) -> Callable[[Meter], Values]:
    return lambda meter: (
        ((each.budget.gate, each.budget.money.currency), read(each)) for each in meter.budgets
    )


RUNNERS: Final = ("runner", "boot")
MEASURES: Final = (
    Measure(
        "retoma_jobs", Sort.GAUGE, ("kind", "state"), "Jobs that are in a state now.", _jobs
    ),
    Measure(
        "retoma_jobs_stuck",
        Sort.GAUGE,
        ("kind",),
        "Jobs that are held and do not move: no progress for 10 minutes, or their runner's lease"
        " is over.",
        lambda meter: (((kind,), meter.stuck.get(kind, 0)) for kind in meter.kinds),
    ),
    Measure(
        "retoma_jobs_at_checkpoint",
        Sort.GAUGE,
        ("kind", "checkpoint"),
        "Jobs that run, by the last thing they reached; `none`: nothing yet.",
        lambda meter: sorted(meter.held.items()),
    ),
    Measure(
        "retoma_dead_letters",
        Sort.GAUGE,
        ("code",),
        f"Dead jobs by their code; beyond {CODES} codes the rest is `{OTHER}`.",
        _dead,
        CODES,
    ),
    Measure(
        "retoma_queue_oldest_waiting_seconds",
        Sort.GAUGE,
        ("queue",),
        "How long the job that waits longest has been due; only for queues in which one is that"
        " nobody has paused.",
        lambda meter: (((each.queue,), each.oldest) for each in meter.lines),
    ),
    Measure(
        "retoma_queue_beat_age_seconds",
        Sort.GAUGE,
        ("queue",),
        "Since the last beat of a runner that knows what stands first in the queue; only for"
        " queues in which something is due.",
        lambda meter: (((each.queue,), each.beat) for each in meter.lines),
    ),
    Measure(
        "retoma_paused",
        Sort.GAUGE,
        ("scope", "name"),
        "1 for each application, kind and queue that somebody has paused.",
        lambda meter: (((scope, name), 1) for scope, name in meter.pauses),
    ),
    Measure(
        "retoma_jobs_submitted_total",
        Sort.COUNTER,
        ("kind",),
        "Jobs that were accepted.",
        _happened("submitted"),
    ),
    Measure(
        "retoma_jobs_claimed_total",
        Sort.COUNTER,
        ("kind",),
        "Claims; each begins an attempt.",
        _happened("claimed"),
    ),
    Measure(
        "retoma_attempts_total",
        Sort.COUNTER,
        ("kind", "end"),
        "Claims that ended, by how. With those that run they are all that were claimed.",
        _attempts,
    ),
    Measure(
        "retoma_jobs_retried_total",
        Sort.COUNTER,
        ("kind",),
        "Attempts that failed and are followed by another.",
        _happened("failed"),
    ),
    Measure(
        "retoma_jobs_buried_total",
        Sort.COUNTER,
        ("kind",),
        "Jobs that became dead letters at the end of an attempt.",
        _happened("buried", "poisoned"),
    ),
    Measure(
        "retoma_jobs_recovered_total",
        Sort.COUNTER,
        ("kind",),
        "Jobs of lost runners that were taken back and wait again.",
        _happened("lost"),
    ),
    Measure(
        "retoma_late_writes_rejected_total",
        Sort.COUNTER,
        ("kind",),
        "Writes of runners whose right to a job had passed; they changed nothing.",
        _happened("refused"),
    ),
    Measure(
        "retoma_runners",
        Sort.GAUGE,
        ("state",),
        "Runners that beat within the last hour.",
        _runners,
    ),
    Measure(
        "retoma_runner_beat_age_seconds",
        Sort.GAUGE,
        RUNNERS,
        "Since a runner's last beat.",
        _runner(lambda _, age: age),
    ),
    Measure(
        "retoma_runner_in_trouble",
        Sort.GAUGE,
        RUNNERS,
        "1 while something keeps a runner from writing, such as a database without room.",
        _runner(lambda runner, _: float(runner.trouble is not None)),
    ),
    Measure(
        "retoma_runner_slots",
        Sort.GAUGE,
        RUNNERS,
        "Jobs a runner takes at once.",
        _runner(lambda runner, _: runner.slots),
    ),
    Measure(
        "retoma_runner_jobs",
        Sort.GAUGE,
        RUNNERS,
        "Jobs a runner holds now.",
        _runner(lambda runner, _: runner.held),
    ),
    Measure(
        "retoma_runner_claimed_total",
        Sort.COUNTER,
        RUNNERS,
        "Jobs a runner claimed.",
        _did("claimed"),
    ),
    Measure(
        "retoma_runner_completed_total",
        Sort.COUNTER,
        RUNNERS,
        "Jobs a runner brought to a good end: done or skipped.",
        _did("done", "skipped"),
    ),
    Measure(
        "retoma_runner_failed_total",
        Sort.COUNTER,
        RUNNERS,
        "Jobs a runner buried.",
        _did("buried"),
    ),
    Measure(
        "retoma_runner_retried_total",
        Sort.COUNTER,
        RUNNERS,
        "Attempts that failed on a runner and are followed by another.",
        _did("failed"),
    ),
    Measure(
        "retoma_runner_recovered_total",
        Sort.COUNTER,
        RUNNERS,
        "Jobs of lost runners that this one took back.",
        _did("lost"),
    ),
    Measure(
        "retoma_pool_things",
        Sort.GAUGE,
        ("pool", "state"),
        "Things of a pool; `resting`: on, and not to be held just now.",
        _pools,
    ),
    Measure(
        "retoma_breaker_state",
        Sort.GAUGE,
        ("breaker", "state"),
        "1 for the state a breaker is in.",
        _breakers,
    ),
    Measure(
        "retoma_rate_calls_per_second",
        Sort.GAUGE,
        ("rate",),
        "Calls a second that all runners together may make now.",
        lambda meter: (((each.key,), each.per_second) for each in meter.rates),
    ),
    Measure(
        "retoma_rate_refused_total",
        Sort.COUNTER,
        ("rate",),
        "Calls under an adaptive rate that the service refused as too many.",
        lambda meter: (((each.key,), each.refused) for each in meter.rates if each.adaptive),
    ),
    Measure(
        "retoma_limit_used",
        Sort.GAUGE,
        ("limit",),
        "Jobs that run under a limit; of limits per key only some where there are many.",
        lambda meter: (((each.key,), each.used) for each in meter.limits),
    ),
    Measure(
        "retoma_limit_cap",
        Sort.GAUGE,
        ("limit",),
        "Jobs that may run under a limit.",
        lambda meter: (((each.key,), each.cap) for each in meter.limits),
    ),
    Measure(
        "retoma_cost_spent_total",
        Sort.COUNTER,
        ("kind", "provider", "currency"),
        "Money that was spent.",
        _money(lambda spent, _: spent),
    ),
    Measure(
        "retoma_cost_saved_total",
        Sort.COUNTER,
        ("kind", "provider", "currency"),
        "Money that was not spent again, because steps were kept or used again.",
        _money(lambda _, saved: saved),
    ),
    Measure(
        "retoma_cost_unpriced_total",
        Sort.COUNTER,
        ("kind", "provider"),
        "Charges whose money nobody knows.",
        _unpriced,
    ),
    Measure(
        "retoma_budget_amount",
        Sort.GAUGE,
        ("budget", "currency"),
        "How much may be spent in the period that is now; budgets of batches are not told.",
        _budget(lambda each: each.budget.money.nanos / NANOS),
    ),
    Measure(
        "retoma_budget_spent",
        Sort.GAUGE,
        ("budget", "currency"),
        "How much of it is spent.",
        _budget(lambda each: each.spent.nanos / NANOS),
    ),
    Measure(
        "retoma_budget_shut",
        Sort.GAUGE,
        ("budget", "currency"),
        "1 while jobs wait because it is spent.",
        _budget(lambda each: float(each.shut)),
    ),
)
DURATION: Final = "retoma_attempt_duration_seconds"
DURATION_LABELS: Final = ("kind", "end")
DURATION_ABOUT: Final = (
    "How long attempts took that were `done` (or skipped), and those that `failed`."
)
INFO: Final = "retoma_info"
INFO_LABELS: Final = ("version", "database")
INFO_ABOUT: Final = "1; which retoma this is, and on which sort of database."


class Reading(Collector):
    """One reading, as Prometheus wants it."""

    def __init__(self, meter: Meter, database: str) -> None:
        self._meter = meter
        self._database = database

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily(INFO, INFO_ABOUT, labels=INFO_LABELS)
        info.add_metric((version("retoma"), self._database), 1)
        yield info
        for each in MEASURES:
            yield each.family(self._meter)
        yield _durations(self._meter)


def _durations(meter: Meter) -> Metric:
    made = HistogramMetricFamily(DURATION, DURATION_ABOUT, labels=DURATION_LABELS)
    for kind in meter.kinds:
        for end, events in LASTED.items():
            lasted = [
                meter.lasted[kind, event] for event in events if (kind, event) in meter.lasted
            ]
            if lasted:
                total = sum(each.ms for buckets in lasted for each in buckets.values())
                made.add_metric((_shown(kind), end), list(_buckets(lasted)), total / 1000)
    return made


def _buckets(lasted: Iterable[Mapping[int, Sum]]) -> Iterator[tuple[str, float]]:
    """Each bound with how many stayed below it."""
    counted = [(bucket, each.n) for buckets in lasted for bucket, each in buckets.items()]
    for bound in BOUNDS:
        yield str(2**bound / 1000), sum(n for bucket, n in counted if bucket < bound)
    yield "+Inf", sum(n for _, n in counted)


def exposition(meter: Meter, database: str) -> bytes:
    """The whole answer. The registry is this scrape's own: nothing registers itself elsewhere."""
    registry = CollectorRegistry()
    registry.register(Reading(meter, database))
    ProcessCollector(namespace="retoma", registry=registry)
    return generate_latest(registry)
