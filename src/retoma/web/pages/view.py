"""Who looks at a page, and how it is told to them: their language, their role, their clock."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from retoma import words
from retoma.access import Role
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import BatchState, DeadReason, ParkReason, State, StepState
from retoma.services.jobs import Event
from retoma.services.money import Total
from retoma.words import Language, Said, say, tell
from retoma.words.recall import tell_stored

MINUTE: Final = 60.0
HOUR: Final = 3_600.0
DAY: Final = 86_400.0
KIBI: Final = 1024
UTC_TIME: Final = re.compile(r"\b(\d{4}-[01]\d-[0-3]\d [0-2]\d:[0-5]\d:[0-5]\d) UTC\b")

STATES: Final[Mapping[State, Said]] = {
    State.WAITING: say("Waiting"),
    State.RUNNING: say("Running"),
    State.PARKED: say("Parked"),
    State.DONE: say("Done"),
    State.SKIPPED: say("Skipped"),
    State.DEAD: say("Dead"),
    State.CANCELED: say("Canceled"),
}
BATCH_STATES: Final[Mapping[BatchState, Said]] = {
    BatchState.EMPTY: say("Empty"),
    BatchState.RUNNING: say("In progress"),
    BatchState.PAUSED: say("Paused"),
    BatchState.PARKED: say("Parked"),
    BatchState.FINISHED: say("Finished"),
    BatchState.FINISHED_WITH_ERRORS: say("Finished with errors"),
}
EVENTS: Final[Mapping[str, Said]] = {
    "submitted": say("Submitted"),
    "claimed": say("Claimed"),
    "step_begun": say("Step begun"),
    "step_saved": say("Step saved"),
    "step_failed": say("Step failed"),
    "step_ended": say("Step ended"),
    "cancel_requested": say("Cancel requested"),
    "stalled": say("Stalled"),
    "evidence": say("Evidence"),
    "held": say("Thing held"),
    "freed": say("Thing freed"),
    "done": say("Done"),
    "skipped": say("Skipped"),
    "failed": say("Failed"),
    "buried": say("Buried"),
    "lost": say("Lost"),
    "released": say("Released"),
    "snoozed": say("Snoozed"),
    "parked": say("Parked"),
    "unparked": say("Goes on"),
    "canceled": say("Canceled"),
    "again": say("Once more"),
    "discarded": say("Discarded"),
}

STEPS: Final[Mapping[StepState, Said]] = {
    StepState.BEGUN: say("begun"),
    StepState.SAVED: say("saved"),
    StepState.FAILED: say("failed"),
    StepState.ENDED: say("ended"),
}
REASONS: Final[Mapping[str, Said]] = {
    ParkReason.OPERATOR: say("waits for a person"),
    ParkReason.CONFIG: say("waits for a setting"),
    ParkReason.BUDGET: say("its budget is spent"),
    ParkReason.UNKNOWN_REMOTE: say("nobody knows how it ended"),
    ParkReason.UNSTORABLE: say("its result cannot be stored"),
    DeadReason.PERMANENT: say("cannot succeed"),
    DeadReason.EXHAUSTED: say("tried often enough"),
    DeadReason.POISON: say("kills its runners"),
    DeadReason.DEADLINE: say("past its deadline"),
}
ROLES: Final[Mapping[Role, Said]] = {
    Role.VIEWER: say("viewer"),
    Role.OPERATOR: say("operator"),
    Role.ADMIN: say("admin"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What two people must share to be shown the same bytes."""

    language: Language
    role: Role
    timezone: str
    called: tuple[tuple[str, State, str], ...] = ()  # a kind, a state, its application's word

    # — words —

    def say(self, template: str, /, **values: Any) -> str:
        """What a template says; `tests/words` finds it there."""
        return tell(words.say(template, **values), self.language)

    def tell(self, text: str) -> str:
        """What code has said."""
        return tell(text, self.language)

    def tell_stored(self, text: str) -> str:
        """A message that was stored, whatever its language; words of others stay as they are."""
        return tell_stored(text, self.language)

    def prose(self, text: str) -> Markup:
        """A sentence with what is to be typed in it set apart."""
        parts = text.split("`")
        return Markup("").join(
            Markup("<code>{}</code>").format(part) if n % 2 else escape(part)
            for n, part in enumerate(parts)
        )

    def state(self, state: State, kind: str | None = None) -> str:
        """As the application of this kind calls it, else as the house does."""
        for of, which, word in self.called:
            if of == kind and which is state:
                return word
        return self.tell(STATES[state])

    def batch_state(self, state: BatchState) -> str:
        return self.tell(BATCH_STATES[state])

    def reason(self, reason: str) -> str:
        """Why it is dead or parked; what a story gave as its reason stays as it is."""
        return self.tell(REASONS.get(reason, reason))

    def end(self, ended: str | None) -> str:
        """How a claim ended."""
        return self.tell(say("Running")) if ended is None else self.tell(EVENTS[ended])

    def step(self, state: str) -> str:
        return self.tell(STEPS[StepState(state)])

    def event(self, event: Event) -> str:
        return self.tell(EVENTS[event.type])

    def role_name(self, role: Role) -> str:
        return self.tell(ROLES[role])

    def failures(self, job: Job) -> int:
        """Attempts that have failed: one that runs is counted, and has not."""
        return max(job.failures - (job.state is State.RUNNING), 0)

    # — roles —

    @property
    def steers(self) -> bool:
        return self.role.allows(Role.OPERATOR)

    @property
    def rules(self) -> bool:
        return self.role.allows(Role.ADMIN)

    # — numbers —

    def number(self, n: float) -> str:
        """1,234,567 or 1.234.567."""
        shown = f"{n:,}" if isinstance(n, int) else f"{n:,.1f}".removesuffix(".0")
        return self._local(shown)

    def figure(self, n: float) -> str:
        """With as many places as it has: a rate may be a hundredth."""
        return self._local(f"{n:,.6f}".rstrip("0").rstrip("."))

    def percent(self, share: float) -> str:
        """Never 100 % before all of it is, nor 0 % once something is."""
        hundredths = round(share * 100, 9)  # 0.57 is 57 of them, not 56.99…
        if 0 < hundredths < 1:
            return self._local(f"{max(hundredths, 0.1):.1f} %")
        return f"{int(hundredths)} %"

    def money(self, total: Total) -> str:
        """In the currencies it was paid in; nothing, where nothing was paid."""
        paid = (("US$", total.usd), ("R$", total.brl))
        return " + ".join(
            f"{sign} {self._local(_amount(amount))}" for sign, amount in paid if amount
        )

    def size(self, n: int) -> str:
        """Of bytes."""
        amount, unit = float(n), "B"
        for following in ("kB", "MB", "GB"):
            if amount < KIBI:
                break
            amount, unit = amount / KIBI, following
        return f"{n} B" if unit == "B" else self._local(f"{amount:.1f} {unit}")

    def lasts(self, span: "timedelta | float") -> str:
        """A length of time, as long as a person wants it."""
        seconds = span.total_seconds() if isinstance(span, timedelta) else span
        if seconds < 1:
            return f"{max(round(seconds * 1000), 0)} ms"
        if seconds < 10:
            return self._local(f"{seconds:.1f} s")
        if seconds < MINUTE:
            return f"{int(seconds)} s"
        if seconds < HOUR:
            return _both(seconds // MINUTE, "min", seconds % MINUTE, "s")
        if seconds < DAY:
            return _both(seconds // HOUR, "h", seconds % HOUR // MINUTE, "min")
        return _both(seconds // DAY, "d", seconds % DAY // HOUR, "h")

    def between(self, begin: datetime | None, end: datetime | None) -> str:
        return "" if begin is None or end is None else self.lasts(end - begin)

    def when(self, at: datetime) -> str:
        """Day and time on the house's clock."""
        local = at.astimezone(_zone(self.timezone))
        day = f"{local:%d/%m}" if self.language is Language.PT_BR else f"{local:%b %d}"
        return f"{day} {local:%H:%M:%S}"

    def timed(self, text: str) -> str:
        """A sentence of ours with its times on the house's clock; they are made in UTC."""
        return UTC_TIME.sub(self._timed, text)

    def _timed(self, found: re.Match[str]) -> str:
        try:
            return self.when(datetime.fromisoformat(f"{found[1]}Z"))
        except (ValueError, OverflowError):  # somebody else's words: no such day
            return found[0]

    def exactly(self, at: datetime) -> str:
        return at.astimezone(_zone(self.timezone)).isoformat(timespec="milliseconds")

    def field(self, at: datetime | None) -> str:
        """As a field of a form has it: the house's time, without its zone."""
        if at is None:
            return ""
        return (
            at.astimezone(_zone(self.timezone)).replace(tzinfo=None).isoformat("T", "minutes")
        )

    def _local(self, shown: str) -> str:
        if self.language is Language.PT_BR:
            return shown.translate(str.maketrans(",.", ".,"))
        return shown


def _amount(amount: Decimal) -> str:
    """Cents, and as many figures more as it takes to see something."""
    if amount >= 1:
        return f"{amount:,.2f}"
    return f"{amount:.6f}".rstrip("0").ljust(4, "0")


@lru_cache(maxsize=8)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _both(many: float, large: str, rest: float, small: str) -> str:
    """`2 h 5 min`; a round one says no more than it must."""
    return f"{int(many)} {large} {int(rest)} {small}" if int(rest) else f"{int(many)} {large}"
