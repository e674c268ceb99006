"""Where a claim looks for jobs: how far past shut gates, and from where in each queue on."""

from retoma.engine import store
from retoma.engine.job import Claim
from retoma.engine.ports import Clock
from retoma.engine.store import Found

FAR = 1_000  # jobs one claim looks at, at most, when gates are shut
HINT_AGE = 1.0  # seconds a start hint may be believed: the bound of a priority inversion


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
