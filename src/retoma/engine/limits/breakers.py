"""Around a call to a service that may be down: after some outages in a row nobody calls it any more.

Whoever needs it is set aside and spends nothing; one canary tries now and then; when it gets through,
all go on by themselves. An error that says "not now" (Transient, a broken connection, a timeout) counts
against the service; any other is the job's own. A call that an adaptive rate has heard of was refused as one
too many: that is no outage.
"""

from collections import Counter

from retoma.db import Database
from retoma.engine import store
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import NotFound, Transient, Unsure
from retoma.engine.rules.job import Held
from retoma.engine.rules.outcome import Aside, Snooze, Unwound
from retoma.engine.rules.retry import retry_after
from retoma.engine.store.breaker import BreakerSeen
from retoma.words import say

KNOWN = 1.0  # seconds a breaker is believed to be as it was
FREE = 20  # outages in a row that one job may blame on a service that works for others
MOST_BLAMED = 10_000  # jobs that are remembered so, of those that never got through: the latest
PAUSE = 1.0  # seconds before a job that met the first outages tries again
HEARD = "heard_by_breakers"  # on an error: of which of them, and when


class Breakers:
    """What one boot knows of them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self.clock = clock
        self._seen: dict[str, BreakerSeen] = {}
        self._until = 0.0
        self._blamed: Counter[tuple[int, str]] = Counter()

    async def seen(self, name: str) -> BreakerSeen:
        if self.clock.now() >= self._until or name not in self._seen:
            listed = await self._database.read(store.breaker.list_breakers)
            self._seen = {each.name: each for each in listed}
            self._until = self.clock.now() + KNOWN
        if name not in self._seen:
            raise NotFound(say("no breaker is called {name!r}", name=name))
        return self._seen[name]

    def forget(self) -> None:
        self._until = 0.0

    def blame(self, job: int, name: str) -> int:
        """Count an outage against a job; how many in a row it has met."""
        self._blamed[job, name] += 1
        if len(self._blamed) > MOST_BLAMED:
            del self._blamed[next(iter(self._blamed))]
        return self._blamed[job, name]

    def acquit(self, job: int, name: str) -> None:
        """The job got through."""
        self._blamed.pop((job, name), None)

    def guard(self, name: str, held: Held) -> "Guard":
        return Guard(self, self._database, name, held)


class Guard:
    """One call, or a few, to what a breaker guards: `async with ctx.breaker("serpapi"):`."""

    def __init__(self, breakers: Breakers, database: Database, name: str, held: Held) -> None:
        self._breakers = breakers
        self._database = database
        self._name = name
        self._held = held
        self._to_tell = False

    async def __aenter__(self) -> None:
        seen = await self._breakers.seen(self._name)
        self._to_tell = seen.failures > 0 or seen.state != "closed"
        if seen.state == "closed":
            return
        name, held = self._name, self._held
        if not await self._database.write(
            lambda tx: store.breaker.may_probe(tx, held, name), verb="probe"
        ):
            raise Unwound(Aside(store.breaker.gate(name)))

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None:
            await self._worked()
        elif isinstance(error, Transient | Unsure | OSError | TimeoutError):
            await self._failed(error)

    async def _worked(self) -> None:
        self._breakers.acquit(self._held.job, self._name)
        if self._to_tell:
            name, actor = self._name, f"job {self._held.job}"
            await self._database.write(
                lambda tx: store.breaker.worked(tx, name, actor=actor), verb="close_breaker"
            )
            self._breakers.forget()

    async def _failed(self, error: BaseException) -> None:
        """An outage is nobody's attempt; but a job that alone meets it has a fault of its own."""
        name, held = self._name, self._held
        slowed = isinstance(error, Transient) and error.slowed
        is_open = not slowed and await self._counted(error)
        if self._breakers.blame(held.job, name) > FREE:
            return
        waits = Aside(store.breaker.gate(name)) if is_open else Snooze(_pause_of(error))
        raise Unwound(waits) from error

    async def _counted(self, error: BaseException) -> bool:
        """Count it, once for all who met it in a call that they shared; whether the breaker is open now."""
        name, held = self._name, self._held
        heard, now = error.__dict__.setdefault(HEARD, {}), self._breakers.clock.now()
        if (
            name in heard and now < heard[name] + PAUSE
        ):  # later: somebody raises the same one again
            return (await self._breakers.seen(name)).state != "closed"
        heard[name] = now
        reason = f"{type(error).__name__}: {error}"[:200]
        is_open = await self._database.write(
            lambda tx: store.breaker.failed(tx, held, name, reason), verb="count_against"
        )
        self._breakers.forget()
        return is_open


def _pause_of(error: BaseException) -> float:
    """What the service asks for, within bounds."""
    asked = retry_after(error.retry_after) if isinstance(error, Transient) else None
    return max(PAUSE, asked or 0.0)
