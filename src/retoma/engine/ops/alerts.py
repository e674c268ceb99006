"""Alert rules: what is looked for, by whoever has the duty, and who is told of it.

A rule reads what is counted anyway, so that looking costs the same whatever history there is. What
holds and is not open is raised; what is open and holds no more is closed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import reduce
from types import MappingProxyType
from typing import Any, cast

from retoma.codec import digest, encode
from retoma.db import Transaction
from retoma.engine import query, store
from retoma.engine.handlers.kinds import Kind, Kinds, Mend, Watch
from retoma.engine.log import get_logger
from retoma.engine.ops.leader_tasks import Chore, Fence
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.live_settings import Declared, Knob, KnobType
from retoma.engine.rules.states import State
from retoma.engine.store import OF_APPLICATIONS, NewJob, Submission, alerts
from retoma.engine.store.alerts import ACTOR, Alert, Cause, Rule, Untold
from retoma.engine.store.breaker import list_breakers
from retoma.engine.store.budget import standing_budgets
from retoma.words import Said, restored, say

EVERY = 30.0  # seconds between two looks
HAND_OVER = 10.0  # seconds between two looks for what is to be told
MOST = 200  # budgets
LONGEST = 30 * 86_400.0  # seconds of silence
QUOTE = "quotes.quote"  # the kind whose specification has a name for its stuck jobs
NOTIFY = "retoma.notify."  # how the kinds that tell somebody are called

# The first three are those of seed 000.
STUCK = Knob(
    "alert_stuck",
    10,
    KnobType.INT,
    least=0,
    most=1_000_000,
    unit=say("jobs"),
    why=say("More jobs of a kind than this that are held and do not move are told of."),
)
SLOW = Knob(
    "alert_slow",
    120.0,
    KnobType.DURATION,
    least=1,
    why=say("A kind whose attempts take longer than this on average is told of."),
)
NO_BEAT = Knob(
    "alert_no_beat",
    900.0,
    KnobType.DURATION,
    least=60,
    why=say("Work that waits, and no runner for it has beaten for this long: that is told of."),
)
BREAKER_OPEN = Knob(
    "alert_breaker_open",
    300.0,
    KnobType.DURATION,
    least=0,
    why=say("A breaker that is open for this long is told of: most outages are over by then."),
)
STALE = Knob(
    "alert_stale",
    3_600.0,
    KnobType.DURATION,
    least=60,
    why=say("What is older than this when somebody could be told of it is news to nobody."),
)
KNOBS = (STUCK, SLOW, NO_BEAT, BREAKER_OPEN, STALE)
DUE = 60.0  # seconds: whoever starts a runner for what it has just submitted alerts nobody
WINDOW = 900.0  # seconds that count as now, of what only happens

ENDS: Mapping[str, Said] = {  # of a batch that has finished
    State.DONE: say("done"),
    State.SKIPPED: say("skipped"),
    State.DEAD: say("dead"),
    State.CANCELED: say("canceled"),
}

NONE: Mapping[str, Any] = MappingProxyType({})

Found = dict[Cause, dict[str, Any]]

log = get_logger("retoma.alerts")


class Alerts:
    """The duty of looking."""

    def __init__(self, zone: str, fixed: Mapping[str, Any] = NONE) -> None:
        """`fixed`: live settings that the environment has set."""
        self._zone = zone
        self._knobs = Declared(KNOBS, fixed=fixed)

    async def chore(self, fence: Fence) -> float:
        """Where nothing happens a look is one statement; most others change nothing."""
        if not await fence.read(lambda tx: alerts.may_alert(tx, WINDOW)):
            return EVERY
        if await fence.read(self._changes):
            await fence.write(self._change, verb="alerts")
        while await fence.read(lambda tx: alerts.any_shown(tx, Rule.BATCH, WINDOW)):
            await fence.write(
                lambda tx: alerts.close_shown(tx, Rule.BATCH, WINDOW), verb="alerts"
            )
        return EVERY

    def _changes(self, tx: Transaction) -> bool:
        return self._found(tx).keys() != self._open(tx)

    def _change(self, tx: Transaction) -> None:
        change_alerts(tx, self._found(tx), self._open(tx))

    def _found(self, tx: Transaction) -> Found:
        return find(tx, self._zone, store.knobs.values(tx, self._knobs))

    def _open(self, tx: Transaction) -> set[Cause]:
        """Without the alerts of applications: only an instance that has the application closes them."""
        causes = alerts.open_causes(tx, but=Rule.BATCH)
        return {cause for cause in causes if cause.rule is not Rule.APPLICATION}


class ApplicationAlerts:
    """The leader task of one application: its watch and its repairs.

    It has a name of its own, so that an instance without the application never holds it.
    """

    def __init__(self, application: str, watch: Watch | None, mend: Mend | None) -> None:
        self._application = application
        self._watch = watch
        self._mend = mend

    async def chore(self, fence: Fence) -> float:
        if not await fence.read(lambda tx: alerts.may_alert(tx, WINDOW)):
            return EVERY
        if await fence.read(lambda tx: self._found(tx).keys() != self._open(tx)):
            await fence.write(
                lambda tx: change_alerts(tx, self._found(tx), self._open(tx)), verb="alerts"
            )
        if self._mend is not None:
            await self._mend()
        return EVERY

    def _found(self, tx: Transaction) -> Found:
        found = {} if self._watch is None else self._watch(tx)
        return {
            Cause(Rule.APPLICATION, f"{self._application}.{name}"): dict(details)
            for name, details in found.items()
        }

    def _open(self, tx: Transaction) -> set[Cause]:
        return {
            cause
            for cause in alerts.open_causes(tx, but=Rule.BATCH)
            if cause.rule is Rule.APPLICATION
            and cause.subject.partition(".")[0] == self._application
        }


def application_chores(kinds: Kinds) -> dict[str, Chore]:
    """The leader tasks of the applications that this instance has, by name."""
    return {
        f"{OF_APPLICATIONS}{name}": ApplicationAlerts(
            name, kinds.watches.get(name), kinds.mends.get(name)
        ).chore
        for name in sorted({*kinds.watches, *kinds.mends})
    }


def change_alerts(tx: Transaction, found: Found, known: set[Cause]) -> None:
    """Close the alerts that hold no longer, raise those that are new."""
    for cause in sorted(known - found.keys()):
        alerts.close_alert(tx, cause)
        log.info("alert.closed", rule=cause.rule, subject=cause.subject)
    for cause in sorted(found.keys() - known):
        alerts.raise_alert(tx, cause, found[cause])
        log.warning("alert.raised", rule=cause.rule, subject=cause.subject)


DEFAULTS = MappingProxyType({each.name: each.default for each in KNOBS})


def find(tx: Transaction, zone: str, knobs: Mapping[str, Any] = DEFAULTS) -> Found:
    """Everything that holds now. That a batch has finished is told by whoever sees it finish."""
    found: Found = {}
    for each in (_stuck, _slow, _no_runner, _breakers):
        found |= each(tx, knobs)
    return found | _dead(tx) | _budgets(tx, zone) | _troubles(tx)


def _stuck(tx: Transaction, knobs: Mapping[str, Any]) -> Found:
    most, stuck = knobs[STUCK.name], query.stuck_by_kind(tx)
    return {
        Cause(Rule.STUCK_QUOTES if kind == QUOTE else Rule.STUCK, kind): {"jobs": n}
        for kind, n in stuck.items()
        if n > most
    }


def _slow(tx: Transaction, knobs: Mapping[str, Any]) -> Found:
    return {
        Cause(Rule.SLOW, each.kind): {"seconds": round(each.mean, 1)}
        for each in query.durations(tx, last=WINDOW)
        if each.mean > knobs[SLOW.name]
    }


def _no_runner(tx: Transaction, knobs: Mapping[str, Any]) -> Found:
    most = knobs[NO_BEAT.name]
    return {
        Cause(Rule.NO_RUNNER, line.queue): {"waited": round(line.oldest), "no_beat": most}
        for line in query.read_lines(tx)
        if line.beat > most and line.oldest > DUE
    }


def _dead(tx: Transaction) -> Found:
    died: Counter[str] = Counter()
    for minute in query.throughput(tx, last=WINDOW):
        if minute.state is State.DEAD:
            died[minute.kind] += minute.jobs
    return {Cause(Rule.DEAD, kind): {"jobs": n} for kind, n in died.items() if n > 0}


def _breakers(tx: Transaction, knobs: Mapping[str, Any]) -> Found:
    most = knobs[BREAKER_OPEN.name]
    late = store.now(tx) - timedelta(seconds=most)
    return {
        Cause(Rule.BREAKER, each.name): {"reason": each.reason or "", "open": most}
        for each in list_breakers(tx)
        if each.state != "closed" and each.since is not None and each.since <= late
    }


def _budgets(tx: Transaction, zone: str) -> Found:
    gates = [each.budget.gate for each in standing_budgets(tx, zone, limit=MOST) if each.shut]
    return {Cause(Rule.BUDGET, gate): {} for gate in (*gates, *alerts.waited_budgets(tx, MOST))}


def _troubles(tx: Transaction) -> Found:
    return {
        Cause(Rule.TROUBLE, each.name): {"text": each.trouble}
        for each in query.list_runners(tx)
        if each.living and each.trouble
    }


def silence(lasting: Any) -> float:
    """For how long nobody is told; nobody silences anything for good."""
    length = seconds(lasting)
    if not 0 < length <= LONGEST:
        raise BadInput(
            say(
                "an alert is silenced for up to {most:g} days, not for {length:g} s",
                most=LONGEST / 86_400,
                length=length,
            )
        )
    return length


def sentence(alert: Alert) -> Said:
    """What it says to a person."""
    return _sentence(alert.rule, alert.subject, alert.details)


def _sentence(rule: Rule, subject: str, details: Mapping[str, Any]) -> Said:
    match rule:
        case Rule.STUCK | Rule.STUCK_QUOTES:
            return say(
                "{jobs} jobs of {kind} are held and do not move",
                kind=subject,
                jobs=details.get("jobs", 0),
            )
        case Rule.SLOW:
            return say(
                "{kind} takes {seconds:g} s on average",
                kind=subject,
                seconds=details.get("seconds", 0),
            )
        case Rule.NO_RUNNER:
            return say(
                "work waits in {queue}, and no runner that knows it has beaten for"
                " {minutes:g} minutes",
                queue=subject,
                minutes=_minutes(details.get("no_beat", NO_BEAT.default)),
            )
        case Rule.DEAD:
            return say("jobs of {kind} became dead letters", kind=subject)
        case Rule.BATCH:
            return say(
                "batch {batch} has finished: {counted}",
                batch=subject,
                counted=_counted(details),
            )
        case Rule.BREAKER:
            return say(
                "breaker {name} has been open for {minutes:g} minutes: {reason}",
                name=subject,
                minutes=_minutes(details.get("open", BREAKER_OPEN.default)),
                reason=details.get("reason", ""),
            )
        case Rule.BUDGET:
            return say("{gate} is spent, and jobs wait for it", gate=subject)
        case Rule.TROUBLE:
            return say(
                "{runner} claims nothing: {trouble}",
                runner=subject,
                trouble=details.get("text", ""),
            )
        case Rule.APPLICATION:
            return say("{subject}: {text}", subject=subject, text=restored(details))


def _minutes(seconds_: float) -> float:
    return round(seconds_ / 60, 1)


def _counted(details: Mapping[str, Any]) -> Said:
    told = [
        say("{n} {state}", n=n, state=ENDS.get(state, state)) for state, n in details.items()
    ]
    if not told:
        return say("")
    return reduce(lambda some, more: say("{some}, {more}", some=some, more=more), told)


# — telling —


class HandOver:
    """The duty of submitting a job for whoever wants to hear of an alert; only a runner that knows
    such a kind has it."""

    def __init__(self, kinds: Kinds, fixed: Mapping[str, Any] = NONE) -> None:
        self._knobs = Declared(KNOBS, fixed=fixed)
        self._kinds = [each for each in kinds if each.name.startswith(NOTIFY)]

    @property
    def wanted(self) -> bool:
        return bool(self._kinds)

    async def chore(self, fence: Fence) -> float:
        if await fence.read(lambda tx: alerts.any_untold(tx, self._stale(tx))):
            await fence.write(self._hand_over, verb="notify")
        return HAND_OVER

    def _hand_over(self, tx: Transaction) -> None:
        raised, closed = alerts.take_untold(tx, self._stale(tx))
        for change, untold in (("raised", raised), ("closed", closed)):
            for notice in _notices(self._kinds, untold):
                _submit(tx, *notice, change)

    def _stale(self, tx: Transaction) -> float:
        return cast("float", store.knobs.value(tx, self._knobs, STALE.name))


def _notices(kinds: Sequence[Kind], untold: Sequence[Untold]) -> Iterator[tuple[Kind, int]]:
    for each in untold:
        for kind in kinds:
            # Who cannot be told anything is not told of that.
            if not each.silent and each.subject not in (kind.name, kind.queue):
                yield kind, each.alert


def _submit(tx: Transaction, kind: Kind, alert: int, change: str) -> None:
    payload = encode({"alert": alert, "change": change})
    about = Submission(
        kind=kind.name,
        version=kind.version,
        queue=kind.queue,
        priority=kind.priority,
        correlation=f"alert {alert}",
        actor=ACTOR,
    )
    key = f"alert {alert} {change}"
    store.submit_job(tx, about, NewJob(payload, key=key, hash=digest(payload)))
