"""What people may do to pools, rates, breakers and knobs while work goes on."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from retoma.codec import encode
from retoma.db import Database
from retoma.engine import store
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.live_settings import Declared, Knob, KnobSeen
from retoma.engine.rules.reasons import check_reason
from retoma.engine.store.breaker import BreakerSeen
from retoma.engine.store.pool import ItemSeen, PoolRules, PoolSeen
from retoma.engine.store.rate import RateSeen
from retoma.words import say

Opener = Callable[[], Awaitable[Database]]
NAME = 200  # characters
PICKS = ("oldest", "random")


class Pools:
    """Shared exclusive things, by the names of their pools."""

    def __init__(self, opened: Opener, actor: str) -> None:
        self._opened = opened
        self._actor = actor

    async def declare(
        self,
        name: str,
        items: Mapping[str, Any] | None = None,
        *,
        vendor: Callable[[str], str] | None = None,
        pick: str = "oldest",
        use_cap: int | None = None,
        cool_down: Any = 0,
        off_after: int | None = None,
        healthy: int = 0,
    ) -> None:
        """Make a pool, or change its rules, and add things to it: names and values.

        `pick`: the one that rested longest, or a random one; never the one a job had last, if
        there is another. `use_cap`: how often one may be used. `cool_down`: how long it rests.
        `off_after`: failures in a row, in different hands, that switch one off, but never below
        `healthy` things, and not while all of its vendor's fail, or more than half within ten
        minutes.
        """
        if pick not in PICKS:
            raise BadInput(
                say("pick is one of {all}, not {pick!r}", all=", ".join(PICKS), pick=pick)
            )
        rules = PoolRules(
            pick=pick,
            use_cap=_from(1, "use_cap", use_cap),
            cool_down=seconds(cool_down),
            off_after=_from(1, "off_after", off_after),
            healthy=_whole(0, "healthy", healthy),
        )
        rows = [
            (_named(each), encode(value), vendor(each) if vendor else "")
            for each, value in (items or {}).items()
        ]

        def write(tx: Any) -> None:
            store.pool.put_pool(tx, _named(name), rules, actor=self._actor)
            if rows:
                store.pool.put_items(tx, name, rows, actor=self._actor)

        await (await self._opened()).write(write, verb="declare_pool")

    async def switch(
        self,
        pool: str,
        names: Sequence[str],
        *,
        on: bool,
        reason: str,
        actor: str | None = None,
    ) -> None:
        """Switch things on or off by hand, all of them or none, saying why."""
        said = check_reason(reason)
        await (await self._opened()).write(
            lambda tx: store.pool.switch(
                tx, pool, names, on=on, reason=said, actor=actor or self._actor
            ),
            verb="switch_pool",
        )

    async def declare_free(self, pool: str, name: str, *, actor: str | None = None) -> None:
        """Somebody has seen the use of a thing end; whoever holds it by name holds it no more."""
        await (await self._opened()).write(
            lambda tx: store.pool.declare_free(tx, pool, name, actor=actor or self._actor),
            verb="declare_free",
        )

    async def list(self) -> list[PoolSeen]:
        return await (await self._opened()).read(store.pool.list_pools)

    async def items(
        self, pool: str, *, after: str = "", limit: int = store.pool.EVERY
    ) -> "Sequence[ItemSeen]":
        """By name, those after one."""
        return await (await self._opened()).read(
            lambda tx: store.pool.list_items(tx, pool, after=after, limit=limit)
        )


class RatesDesk:
    """How often something may be called, by all runners together."""

    def __init__(self, opened: Opener, actor: str) -> None:
        self._opened = opened
        self._actor = actor

    async def set(
        self,
        key: str,
        per_second: float,
        *,
        burst: float | None = None,
        actor: str | None = None,
    ) -> None:
        """So many calls a second; `burst`: how many may come at once (a second's worth)."""
        rate = _positive("per_second", per_second)
        most = max(rate, 1.0) if burst is None else _positive("burst", burst)
        if most < 1:
            raise BadInput(say("{key}: a burst below one lets nothing through", key=key))
        await (await self._opened()).write(
            lambda tx: store.rate.put_rate(
                tx, _named(key), rate, most, actor=actor or self._actor
            ),
            verb="put_rate",
        )

    async def list(self) -> "Sequence[RateSeen]":
        return await (await self._opened()).read(store.rate.list_rates)


class BreakersDesk:
    """What guards services that may be down."""

    def __init__(self, opened: Opener, actor: str) -> None:
        self._opened = opened
        self._actor = actor

    async def declare(self, name: str, *, threshold: int = 5, rest: Any = 30) -> None:
        """Opens after so many outages in a row; lets a canary through after each `rest`."""
        many, pause = _whole(1, "threshold", threshold), seconds(rest)
        if not pause:
            raise BadInput(say("{name}: a breaker needs some rest", name=name))
        await (await self._opened()).write(
            lambda tx: store.breaker.put_breaker(
                tx, _named(name), many, pause, actor=self._actor
            ),
            verb="put_breaker",
        )

    async def list(self) -> "Sequence[BreakerSeen]":
        return await (await self._opened()).read(store.breaker.list_breakers)

    async def open(self, name: str, reason: str, *, actor: str | None = None) -> None:
        """By hand: whoever needs it waits outside; a canary closes it again after its rest."""
        said = check_reason(reason)
        await (await self._opened()).write(
            lambda tx: store.breaker.open_by_hand(tx, name, said, actor=actor or self._actor),
            verb="open_breaker",
        )

    async def close(self, name: str, *, actor: str | None = None) -> None:
        await (await self._opened()).write(
            lambda tx: store.breaker.close_by_hand(tx, name, actor=actor or self._actor),
            verb="close_breaker",
        )


class KnobsDesk:
    """What an admin may change while work goes on, by name; an application's begin with its own."""

    def __init__(self, opened: Opener, actor: str, declared: Declared) -> None:
        self._opened = opened
        self._actor = actor
        self.declared = declared

    def declare(self, application: str, knobs: Sequence[Knob]) -> None:
        """Those of an application: `ads` and `session_limit` make `ads.session_limit`."""
        self.declared.add(_named(application), knobs)

    def know(self, others: "KnobsDesk") -> None:
        """Those that another desk knows too."""
        self.declared.know(others.declared)

    def fix(self, values: Mapping[str, Any]) -> None:
        """What the environment of this process says of some: it holds over what people set."""
        self.declared.fix(values)

    async def get(self, name: str) -> KnobSeen:
        declared = self.declared
        declared.of(name)
        return await (await self._opened()).read(
            lambda tx: store.knobs.seen(tx, declared, name)
        )

    async def values(self, *names: str) -> list[Any]:
        """What these are, at one instant."""
        declared = self.declared
        return await (await self._opened()).read(
            lambda tx: [store.knobs.value(tx, declared, name) for name in names]
        )

    async def all(self) -> list[KnobSeen]:
        """As they were declared."""
        declared = self.declared
        return await (await self._opened()).read(
            lambda tx: store.knobs.list_knobs(tx, declared)
        )

    async def set(self, name: str, value: object, *, actor: str | None = None) -> KnobSeen:
        """For all processes, from their next look on."""
        declared, who = self.declared, _named(actor or self._actor)
        declared.free(name).read(value)
        return await (await self._opened()).write(
            lambda tx: store.knobs.set_knob(tx, declared, name, value, actor=who),
            verb="set_knob",
        )

    async def reset(self, name: str, *, actor: str | None = None) -> KnobSeen:
        """Its default holds again."""
        declared, who = self.declared, _named(actor or self._actor)
        declared.free(name)
        return await (await self._opened()).write(
            lambda tx: store.knobs.reset_knob(tx, declared, name, actor=who),
            verb="reset_knob",
        )


def _positive(what: str, number: float) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise BadInput(say("{name} is a number, not {number!r}", name=what, number=number))
    if not 0 < number < 1e9:
        raise BadInput(
            say(
                "{name} is more than nothing and finite, not {number!r}",
                name=what,
                number=number,
            )
        )
    return float(number)


def _named(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= NAME or not name.isprintable():
        raise BadInput(
            say(
                "a name has 1 to {most} printable characters, not {name!r}",
                most=NAME,
                name=name,
            )
        )
    return name


def _from(least: int, what: str, number: int | None) -> int | None:
    return None if number is None else _whole(least, what, number)


def _whole(least: int, what: str, number: int) -> int:
    if type(number) is not int or number < least:
        raise BadInput(
            say(
                "{name} is a whole number from {least}, not {number!r}",
                name=what,
                least=least,
                number=number,
            )
        )
    return number
