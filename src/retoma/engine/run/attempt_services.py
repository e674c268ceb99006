"""What the handler of one attempt may use: it saves, reads, pays, takes and frees for one claim.

It knows the claim and the services of the runner, not the attempt: an attempt owns its services and its
context. What is to stop the attempt is asked of the attempt's owner, by the claim.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

from retoma.db import Full
from retoma.engine import store
from retoma.engine.handlers.kinds import Kind
from retoma.engine.isolation.isolate import Limits
from retoma.engine.limits.breakers import Guard
from retoma.engine.limits.rates import Permit
from retoma.engine.rules import duration
from retoma.engine.rules.cost import Bill, Offer, Payer
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.rules.gates import pool_gate
from retoma.engine.rules.job import Claim, Held, Item, Scope, StepId
from retoma.engine.rules.outcome import Aside, Unwound
from retoma.engine.rules.pool_items import Freeing, Taking
from retoma.engine.rules.states import StepState
from retoma.engine.run.runner_services import RunnerServices
from retoma.engine.run.shared_writes import Part, Shares, Unwanted
from retoma.engine.run.stop_request import StopRequest, Why
from retoma.engine.run.submit_spans import SubmitSpans
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import Evidence
from retoma.engine.store.reuse import Found
from retoma.engine.writing.group_writer import Answer

EVIDENCE = "evidence"  # where trouble is met
DICE = 1_000_003  # sides
COPIES = 2  # of a saved value while it is read back: as its text, and as the handler gets it
PAUSE = 0.5  # seconds between looks whether the lease is good, or room there, again


class AttemptServices:
    """Implements `HandlerServices` for one claim."""

    __slots__ = (
        "_items",
        "_kind",
        "_reserved",
        "_runner",
        "_stop",
        "_took",
        "claim",
        "held",
        "moves",
    )

    def __init__(
        self,
        claim: Claim,
        held: Held,
        kind: Kind,
        runner: RunnerServices,
        stop: StopRequest,
    ) -> None:
        self.claim = claim
        self.held = held
        self.moves = 0  # saves and reports: what keeps it from stalling
        self._kind = kind
        self._runner = runner
        self._stop = stop
        self._items: dict[int, Item] = {}  # held for this attempt alone
        # Not yet handed out.
        self._reserved = {item.pool: item for item in claim.things} if claim.things else {}
        self._took = claim.epoch > 1  # it may have had items before

    def save(
        self,
        step: StepId,
        value: str | None,
        state: StepState = StepState.SAVED,
        bill: Bill | None = None,
    ) -> Answer:
        self.moves += 1
        return self._runner.writer.save(self.held, self.claim.kind, step, value, state, bill)

    @asynccontextmanager
    async def reading(
        self, steps: Sequence[StepId], size: int
    ) -> AsyncIterator[Mapping[StepId, str]]:
        async with self._runner.step_memory.hold(COPIES * size):
            yield await self._runner.database.read(
                lambda tx: store.load_values(tx, self.claim, steps)
            )

    async def write(self, step: StepId, fn: Callable[[Transaction], Any], type_: Any) -> str:
        self.moves += 1
        spans = SubmitSpans.of(self._runner.traces)
        effects = self._runner.effects
        try:
            effect = await effects.write(self.held, step, fn, type_, spans)
        except LeaseLost:
            await self._runner.writer.refuse(self.claim.kind)
            raise
        if effect.text is None:
            self.cancel_wanted()
            raise asyncio.CancelledError
        return effect.text

    async def share(self, fn: Shares, about: Any, size: int) -> Any:
        self.moves += 1
        part = Part(self.held, about, size, SubmitSpans.of(self._runner.traces))
        try:
            return await self._runner.shared.write(fn, part)
        except LeaseLost:
            await self._runner.writer.refuse(self.claim.kind)
            raise
        except Unwanted:
            self.cancel_wanted()
            raise asyncio.CancelledError from None

    @property
    def payer(self) -> Payer:
        claim = self.claim
        return Payer(claim.job, claim.batch, claim.kind, self._kind.account)

    def pays(self, step: str, provider: str) -> None:
        self._runner.budgets.learn(self.claim.kind, step, provider)

    def paid(self, step: str) -> Iterable[str] | None:
        return self._runner.budgets.paid(self.claim.kind, step)

    async def afford(self, providers: Iterable[str]) -> None:
        await self._runner.budgets.afford(self.payer, providers)

    async def look_up(self, offer: Offer) -> Found | None:
        age = self._runner.keep_reuse
        return await self._runner.database.read(
            lambda tx: store.reuse.find(tx, offer.hash, age)
        )

    def report(self, progress: float | None, note: str | None) -> Answer:
        self.moves += 1
        return self._runner.writer.report(self.held, self.claim.kind, progress, note)

    async def attach(self, evidence: Evidence) -> None:
        while (kept := await self._attached(evidence)) is None:
            await self._runner.clock.sleep(PAUSE)  # a full disk is not the handler's failure
        if not kept:
            await self._runner.writer.refuse(self.claim.kind)
            raise LeaseLost(self.held.job)

    async def _attached(self, evidence: Evidence) -> bool | None:
        """Whether this runner may still write on the job; None while there is no room."""
        held, instance = self.held, self._runner.instance
        try:
            kept = await self._runner.keeper.attach(
                self._runner.database, instance, held, evidence
            )
        except Full as error:
            self._runner.trouble.met(EVIDENCE, error)
            return None
        self._runner.trouble.over(EVIDENCE)
        return kept

    def permit(
        self,
        key: str,
        n: int,
        *,
        adaptive: bool,
        working: Callable[[], AbstractContextManager[None]],
    ) -> Permit:
        return self._runner.rates.permit(key, n, adaptive=adaptive, working=working)

    def guard(self, name: str) -> Guard:
        return self._runner.breakers.guard(name, self.held)

    async def take(self, pool: str, scope: Scope, shuns: str | None = None) -> Item:
        """What came with the claim, if it did: for as long, or for longer than the attempt."""
        reserved = self._reserved.get(pool)
        if reserved is not None and scope is reserved.scope:
            self._keep(self._reserved.pop(pool))
            return reserved
        if reserved is not None and reserved.scope is Scope.ATTEMPT:
            return await self._take(pool, scope, keeps=self._reserved.pop(pool))
        return await self._take(pool, scope, shuns=shuns)

    async def _take(
        self, pool: str, scope: Scope, *, keeps: Item | None = None, shuns: str | None = None
    ) -> Item:
        taking = Taking(
            self.held,
            self.claim.generation,
            pool,
            scope,
            dice=self._runner.rng.randrange(1, DICE),
            again=self._took,
            shuns=shuns,
            keeps=keeps,
            has=frozenset(self._items),
        )
        self._took = True
        answer = self._runner.writer.take(self.claim.kind, taking)
        answer.add_done_callback(self._taken)  # also where nobody waits for it any more
        found: Item | None = await answer
        if found is None:
            raise Unwound(Aside(pool_gate(pool)))
        return found

    def _taken(self, answer: "asyncio.Future[Item | None]") -> None:
        item = None if answer.exception() else answer.result()
        if item is not None:
            self._keep(item)

    def _keep(self, item: Item) -> None:
        if item.scope is Scope.ATTEMPT:
            self._items[item.id] = item

    def free(self, item: Item, *, worked: bool | None, by: str | None = None) -> Answer:
        self._items.pop(item.id, None)
        return self._free(Freeing(self.held, item, worked, by, self.claim.kind))

    def _free(self, freeing: Freeing) -> Answer:
        answer = self._runner.writer.free(freeing)
        answer.add_done_callback(_look_at)
        return answer

    def release_items(self) -> None:
        """What it holds for the attempt alone, in the transaction that ends it."""
        for item in [*self._items.values()]:
            self.free(item, worked=None)
        for item in self._reserved.values():
            if item.scope is Scope.ATTEMPT:
                self._free(Freeing(self.held, item, kind=self.claim.kind, used=False))
        self._reserved.clear()

    async def pause(self, seconds: float) -> None:
        await self._runner.clock.sleep(duration.seconds(seconds))

    def free_to_start(self) -> bool:
        return self._stop.why is None and self._runner.heartbeat.valid()

    async def may_start(self) -> None:
        if self._stop.why is not None:
            raise asyncio.CancelledError
        while not self._runner.heartbeat.valid():
            await self._runner.clock.sleep(PAUSE)

    @property
    def limits(self) -> Limits:
        return self._kind.limits

    @property
    def let_go(self) -> float:
        return self._runner.let_go

    def overdue(self, late: str) -> None:
        self._runner.owner.overdue(self.held, late)

    def cancel_wanted(self) -> None:
        self._runner.owner.stop(self.held, Why.CANCEL)

    async def keep_result(self, content: bytes, media: str) -> None:
        """Keep the bytes of a result that could not be stored."""
        await self.attach(Evidence("result", media, content))


def _look_at(answer: "asyncio.Future[Any]") -> None:
    """A refusal that no task waits for need not be reported as one that was forgotten."""
    answer.exception()
