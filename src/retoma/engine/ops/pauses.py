"""What people may pause: an application, a kind, a queue; and that nothing of it is claimed any more."""

from retoma.db import Busy, Database, Transaction
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.limits.controls import Opener
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.reasons import check_reason
from retoma.engine.store import pauses
from retoma.engine.store.pauses import Belongs, Pause, Scope
from retoma.words import say

LOOK = 0.01  # seconds between two looks whether a claim of before has ended
PATIENCE = 10.0  # seconds; a claim takes milliseconds


class PausesDesk:
    """Applications, kinds and queues that rest. What runs of them goes on to its end; due times keep."""

    def __init__(self, opened: Opener, actor: str, kinds: Kinds, clock: Clock) -> None:
        self._opened = opened
        self._actor = actor
        self._kinds = kinds
        self._clock = clock

    async def pause(
        self, scope: Scope | str, name: str, why: str | None = None, *, actor: str | None = None
    ) -> tuple[Pause, bool]:
        """When this returns nothing of it is claimed any more, by anybody, until it is resumed.

        How it is paused, and whether it went on until now. `Busy`: it is paused, and somebody's open
        transaction may still hold a claim of before; asked again, that is looked at again.
        """
        what, who = scope_of(scope), actor or self._actor
        said = None if why is None else check_reason(why)
        belong = [Belongs._make(each) for each in self._kinds.belong()]
        database = await self._opened()

        def pause(tx: Transaction) -> tuple[Pause, bool]:
            pauses.declare(tx, belong)
            return pauses.pause(tx, what, name, said, actor=who)

        paused = await database.write(pause, verb="pause")
        await self._claims_of_before(database, what, name)
        return paused

    async def resume(self, scope: Scope | str, name: str, *, actor: str | None = None) -> bool:
        """It goes on where it stood. Whether it was paused until now."""
        what, who = scope_of(scope), actor or self._actor
        return await (await self._opened()).write(
            lambda tx: pauses.resume(tx, what, name, actor=who), verb="resume"
        )

    async def all(self) -> list[Pause]:
        """What is paused; what was paused first, first."""
        return await (await self._opened()).read(pauses.list_pauses)

    async def names(self) -> dict[Scope, list[str]]:
        """All that could be paused: what any process with this database has declared, and this one."""
        kept = await (await self._opened()).read(pauses.belongings)
        known = {*kept, *(Belongs._make(each) for each in self._kinds.belong())}
        return {scope: sorted({each.named(scope) for each in known}) for scope in Scope}

    async def _claims_of_before(self, database: Database, scope: Scope, name: str) -> None:
        """Until every claim that cannot have seen the pause has ended."""
        old, waited = await database.read(pauses.claims_under_way), 0.0
        while old:
            if waited > PATIENCE:
                raise Busy(
                    f"{scope} {name} is paused; a transaction of before does not end, and may hold"
                    " a claim: ask again when it has ended"
                )
            await self._clock.sleep(LOOK)
            waited += LOOK
            old &= await database.read(pauses.claims_under_way)


def scope_of(given: Scope | str) -> Scope:
    try:
        return Scope(given)
    except ValueError:
        raise BadInput(
            say(
                "what is paused is one of {known}, not {given!r}",
                known=", ".join(Scope),
                given=given,
            )
        ) from None
