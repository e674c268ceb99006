"""Where a claim looks for jobs: how far past shut gates, in which queues, from where in each on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retoma.db import Transaction
from retoma.engine import store
from retoma.engine.ports import Clock
from retoma.engine.rules.job import Claim
from retoma.engine.store import Found, Spot, Waiting

FAR = 1_000  # jobs one claim looks at, at most, when gates are shut
HINT_AGE = 1.0  # seconds a start hint may be believed: the bound of a priority inversion
FEW = 8  # queues: a claim reads as many at once, of more it takes turns
QUEUE_SHARE = (
    4  # jobs of each queue in a claim that takes turns: with fewer, looking costs more
)


class Gates:
    """Whether the next claim goes past gates, and how far it looks. It does after one that met
    some; where most were shut it looks twice as far, so that a long line of them is soon aside."""

    def __init__(self) -> None:
        self._met = False
        self._far = 0

    def meet(self, free: int) -> int:
        """How many waiting jobs to look at; 0: a plain claim, that leaves them where they stand."""
        return max(free, self._far) if self._met else 0

    def met(self, found: Found, free: int) -> None:
        looked = self.meet(free)
        shut = found.more and len(found.claims) < free
        self._met = found.gated
        self._far = min(2 * looked, FAR) if shut else 0


class StartHints:
    """Where in each queue to start looking. Believed for a second at most, and never after a
    short claim or a ring: something may then stand before it."""

    def __init__(self, clock: Clock, useful: bool) -> None:
        self._clock = clock
        self._useful = useful
        self._last: dict[str, tuple[int, int, int]] = {}
        self._since = 0.0

    def after(self, queue: str) -> tuple[int, int, int]:
        if self._clock.now() - self._since > HINT_AGE:
            self.forget()
        return self._last.get(queue, store.NOTHING_BEFORE)

    def claimed(self, claims: list[Claim], *, short: bool) -> bool:
        """Learn from a claim; whether it came back short because of a hint."""
        if short:
            hinted = bool(self._last)
            self.forget()
            return hinted
        if self._useful:
            for claim in claims:
                at = (claim.priority, claim.turn, claim.job)
                self._last[claim.queue] = max(at, self._last.get(claim.queue, at))
        return False

    def forget(self) -> None:
        self._last.clear()
        self._since = self._clock.now()

    def forget_queue(self, queue: str) -> None:
        self._last.pop(queue, None)


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """The queues that one claim reads, and how many jobs of each at most."""

    queues: Sequence[str]
    share: int
    look: bool = False  # look first which of these have waiting jobs, then choose among those


class QueueCursor:
    """Chooses the queues of each claim, so that a claim costs the same with 200 kinds as with one.

    It remembers which queues may have waiting jobs: all at first, then those that a look found and
    those of which a wake-up was received. Where they are many, claims take turns among those of
    the best priority. The look is repeated after a second: the bound of a priority inversion.
    """

    def __init__(self, clock: Clock, queues: Sequence[str]) -> None:
        self._clock = clock
        self._all = queues
        self._maybe = set(queues)  # may have waiting jobs
        self._woken = set(queues)  # something arrived there since the last claim began
        self._ranked: list[str] = []  # of the best priority at the last look, first come first
        self._since = 0.0  # when that was
        self._choice = QueueChoice((), 0)
        self._past_gates = False

    def know(self, queues: Sequence[str]) -> None:
        """Choose among these from now on."""
        self._all = queues
        self.wake_all()

    def wake_all(self) -> None:
        """Any queue may have waiting jobs."""
        self._maybe = set(self._all)
        self._woken = set(self._all)
        self._ranked = []

    def wake(self, queue: str) -> None:
        """This queue may have waiting jobs."""
        self._maybe.add(queue)
        self._woken.add(queue)

    def woken(self) -> list[str]:
        """The queues in which something arrived since the last claim began."""
        return sorted(self._woken)

    def choose(self, free: int, *, past_gates: bool) -> QueueChoice:
        """The queues for a claim of `free` jobs."""
        self._woken.clear()
        self._past_gates = past_gates
        self._choice = self._choose(free)
        return self._choice

    def _choose(self, free: int) -> QueueChoice:
        if len(self._all) <= FEW:
            return QueueChoice(self._all, free)
        if len(self._maybe) <= FEW:
            self._ranked = []
            return QueueChoice(sorted(self._maybe), free)
        if not self._ranked or self._clock.now() - self._since > HINT_AGE:
            return QueueChoice(sorted(self._maybe), free, look=True)
        return share_out(self._ranked, free, past_gates=self._past_gates)

    def claimed(self, found: Found, free: int) -> bool:
        """Learn from a claim; whether other queues may fill the slots that it left free."""
        if len(self._all) <= FEW:
            return False
        choice = self._choice
        if found.looked is not None:
            self._maybe = {each.queue for each in found.looked} | self._woken
            self._ranked, self._since = _of_best_priority(found.looked), self._clock.now()
            choice = share_out(self._ranked, free, past_gates=self._past_gates)
        if found.gated and not self._past_gates:
            return False  # the next claim reads the same queues, past their gates
        short = len(found.claims) < free
        exhausted = _exhausted(choice, found) if short and not self._past_gates else set()
        self._maybe -= exhausted - self._woken
        self._take_turns(choice.queues, exhausted)
        return short and bool(self._ranked if self._past_gates else self._maybe)

    def _take_turns(self, asked: Sequence[str], exhausted: set[str]) -> None:
        if not self._ranked:
            return
        others = [queue for queue in self._ranked if queue not in asked]
        # Past gates a queue is read once in a look: its jobs may all be behind shut ones.
        again = () if self._past_gates else (queue for queue in asked if queue not in exhausted)
        self._ranked = [*others, *again]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """Everything that one claim asks of the database."""

    boot: str
    queues: Sequence[str]  # all that this runner reads
    choice: QueueChoice
    after: Mapping[str, tuple[int, int, int]]  # from where in each queue of the choice
    holding: Mapping[str, Sequence[str]]  # of each queue the kinds that hold things
    knows: Sequence[str]
    free: int
    suspects: int
    promote: bool
    pauses: str
    meet: int  # how many jobs to look at past gates; 0: none
    holds: Mapping[str, Sequence[str]]
    dice: int

    def claim(self, tx: Transaction) -> Found:
        if not self.choice.look:
            return self._claim(tx, self.choice, promote=self.promote)
        if self.promote:
            store.promote_jobs(tx, self.queues, self.free)
        looked = store.waiting_queues(tx, self.choice.queues, self.knows, self.suspects)
        choice = share_out(_of_best_priority(looked), self.free, past_gates=self.meet > 0)
        found = self._claim(tx, choice, promote=False)
        due = store.next_due(tx, self.queues) if self.promote else None
        return replace(found, looked=looked, next_due=due)

    def _claim(self, tx: Transaction, choice: QueueChoice, *, promote: bool) -> Found:
        spots = [
            Spot(queue, self.after[queue], self.holding.get(queue, ()))
            for queue in choice.queues
        ]
        how: dict[str, Any] = {
            "slots": self.free,
            "suspects": self.suspects,
            "promote": promote,
            "pauses": self.pauses,
        }
        if not self.meet:
            return store.claim_jobs(tx, self.boot, spots, self.knows, share=choice.share, **how)
        how |= {"meet": self.meet, "holds": self.holds, "dice": self.dice}
        return store.claim_past_gates(tx, self.boot, spots, self.knows, **how)


def share_out(queues: Sequence[str], free: int, *, past_gates: bool) -> QueueChoice:
    """The first queues, as many as a claim of `free` jobs reads at once."""
    width = max(free // QUEUE_SHARE, 1)
    asked = queues[: min(width, FEW) if past_gates else width]
    return QueueChoice(asked, -(-free // max(len(asked), 1)))


def _exhausted(choice: QueueChoice, found: Found) -> set[str]:
    """The queues that gave less than they were asked for."""
    given = Counter(claim.queue for claim in found.claims)
    return {queue for queue in choice.queues if given[queue] < choice.share}


def _of_best_priority(looked: Sequence[Waiting]) -> list[str]:
    """The queues whose first job is of the best priority, those whose job came first at the front."""
    best = min((each.priority for each in looked), default=0)
    first = (each.queue for each in sorted(looked) if each.priority == best)
    return list(dict.fromkeys(first))
