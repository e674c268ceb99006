"""Alerts: what somebody should know of. Of one rule about one subject one is open at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from retoma.codec import encode
from retoma.db import Call, Transaction
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import SQL
from retoma.words import say

BITE = 100  # alerts that are closed or told of in one transaction
ACTOR = "alerts"


class Rule(StrEnum):
    """What is looked for; the first three have the names of the quotes' own specification."""

    STUCK_QUOTES = "HighStuckQuotes"
    SLOW = "SlowProcessing"
    NO_RUNNER = "WorkerHealthCheck"
    STUCK = "HighStuckJobs"  # the first of them, of any other kind
    DEAD = "DeadLetters"
    BATCH = "BatchFinished"
    BREAKER = "BreakerOpen"
    BUDGET = "BudgetSpent"
    TROUBLE = "RunnerInTrouble"
    APPLICATION = "ApplicationTrouble"  # what an application looks for itself


class Severity(StrEnum):
    """How much it matters."""

    INFO = "info"  # it has happened, and is over by itself
    WARNING = "warning"
    CRITICAL = "critical"


SEVERITIES: Mapping[Rule, Severity] = {
    Rule.STUCK_QUOTES: Severity.WARNING,
    Rule.STUCK: Severity.WARNING,
    Rule.SLOW: Severity.WARNING,
    Rule.NO_RUNNER: Severity.CRITICAL,
    Rule.DEAD: Severity.WARNING,
    Rule.BATCH: Severity.INFO,
    Rule.BREAKER: Severity.WARNING,
    Rule.BUDGET: Severity.CRITICAL,
    Rule.TROUBLE: Severity.CRITICAL,
    Rule.APPLICATION: Severity.CRITICAL,
}


class Cause(NamedTuple):
    """By which an alert is known while it is open."""

    rule: Rule
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert as it stands."""

    id: int
    rule: Rule
    subject: str  # a kind, a queue, a batch, a breaker, a budget, or <application>.<trouble>
    severity: Severity
    details: dict[str, Any]
    since: datetime
    closed_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    silenced_until: datetime | None
    silenced_by: str | None
    silent: bool  # nobody is told of it now

    @property
    def is_open(self) -> bool:
        return self.closed_at is None


class Untold(NamedTuple):
    """An alert of which somebody is to hear that it began, or that it is over."""

    alert: int
    subject: str
    silent: bool


def raise_alert(tx: Transaction, cause: Cause, details: Mapping[str, Any]) -> bool:
    """Whether it was not open already."""
    severity, told = SEVERITIES[cause.rule], encode(dict(details))
    row = tx.one(
        SQL.raise_alert, rule=cause.rule, subject=cause.subject, severity=severity, details=told
    )
    if row is not None:
        _tell(tx, "alert.raised", cause, details=told)
    return row is not None


def close_alert(tx: Transaction, cause: Cause) -> bool:
    """Whether it was open."""
    closed = tx.one(SQL.close_alert, rule=cause.rule, subject=cause.subject) is not None
    if closed:
        _tell(tx, "alert.closed", cause)
    return closed


def raise_finished(tx: Transaction, finished: Mapping[str, str]) -> None:
    """Of each batch by its id how many of its jobs are where, in the transaction that has told of
    it. One that finishes again is told of again."""
    batches = ",".join(f"{encode(batch)}:{counted}" for batch, counted in finished.items())
    told = {"rule": Rule.BATCH, "batches": f"{{{batches}}}"}
    tx.run(SQL.close_finished, **told)
    tx.run(SQL.raise_finished, severity=SEVERITIES[Rule.BATCH], **told)


def may_alert(tx: Transaction, window: float) -> bool:
    """Whether a look could find anything; one statement that is a transaction in itself."""
    [found] = tx.finish(Call(SQL.may_alert, {"seconds": window}))
    return bool(found)


def any_shown(tx: Transaction, rule: Rule, shown: float) -> bool:
    """Whether something that has only happened could be seen for long enough."""
    return tx.one(SQL.any_shown, rule=rule, shown=shown) is not None


def close_shown(tx: Transaction, rule: Rule, shown: float) -> None:
    """Close a bite of it."""
    tx.run(SQL.close_shown, rule=rule, shown=shown, bite=BITE)


def open_causes(tx: Transaction, *, but: Rule) -> set[Cause]:
    return set(tx.all(SQL.open_alerts, into=Cause, rule=but))


def waited_budgets(tx: Transaction, most: int) -> list[str]:
    """Gates of budgets of batches for which jobs wait."""
    return tx.all(SQL.waited_budgets, into=str, most=most)


def get_alert(tx: Transaction, alert: int) -> Alert:
    found = tx.one(SQL.get_alert, into=Alert, id=alert)
    if found is None:
        raise NotFound(say("there is no alert {alert}", alert=alert))
    return found


def list_alerts(
    tx: Transaction, *, in_force: bool, before: int | None, limit: int
) -> list[Alert]:
    """Newest first; those in force, or all."""
    asked = SQL.list_open_alerts if in_force else SQL.list_alerts
    return tx.all(asked, into=Alert, before=before, limit=limit)


def acknowledge_alert(tx: Transaction, alert: int, *, actor: str) -> Alert:
    """Somebody knows. Said again, the first who said so stays."""
    cause = tx.one(SQL.acknowledge_alert, into=Cause, id=alert, actor=actor)
    if cause is not None:
        _tell(tx, "alert.acknowledged", cause, actor=actor)
    return _must_be_open(get_alert(tx, alert))


def silence_alert(tx: Transaction, alert: int, seconds: float, *, actor: str) -> Alert:
    """Nobody is told of it, nor of the next ones of its rule and subject, for so long."""
    cause = tx.one(SQL.silence_alert, into=Cause, id=alert, seconds=seconds, actor=actor)
    if cause is not None:
        told = encode({"seconds": seconds})
        _tell(tx, "alert.silenced", cause, actor=actor, details=told)
    return _must_be_open(get_alert(tx, alert))


def any_untold(tx: Transaction, stale: float) -> bool:
    """One statement that is a transaction in itself."""
    [found] = tx.finish(Call(SQL.any_untold, {"stale": stale}))
    return bool(found)


def take_untold(tx: Transaction, stale: float) -> tuple[list[Untold], list[Untold]]:
    """What was raised, and what was closed, since the last time; each is taken once. What is older
    than `stale` seconds is news to nobody."""
    raised = tx.all(SQL.tell_raised, into=Untold, stale=stale, bite=BITE)
    closed = tx.all(SQL.tell_closed, into=Untold, stale=stale, bite=BITE)
    return sorted(raised), sorted(closed)


def _tell(
    tx: Transaction, verb: str, cause: Cause, *, actor: str = ACTOR, details: str | None = None
) -> None:
    subject = f"{cause.rule} {cause.subject}"
    tell(tx, actor=actor, verb=verb, subject=subject, details=details)


def _must_be_open(alert: Alert) -> Alert:
    if not alert.is_open:
        raise IllegalMove(say("alert {alert} is closed: nothing was changed", alert=alert.id))
    return alert
