"""A question that costs money is a job: its intent is committed first, a budget may refuse it, its cost is told.

Whoever searches claims that job himself, so that nobody waits for a runner; where one was quicker, for its
end. The vector stays for a week: the same question again, whoever asks it, is not paid for again. Of those
who ask it in the same moment, in any process, the first pays.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from retoma.apps.embeddings import store
from retoma.apps.embeddings.chunks import content_hash
from retoma.apps.embeddings.model import CODES, PROVIDER, Asked, Model
from retoma.apps.embeddings.providers import (
    InputType,
    ItemRefused,
    Provider,
    Refusal,
    build_provider,
)
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.rules.errors import IllegalMove, Permanent, Transient
from retoma.engine.rules.gates import Limit
from retoma.engine.rules.job import Job
from retoma.engine.rules.outcome import Skip, Unknown
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.states import StepState
from retoma.engine.run.hinted import Heeded, HintedRunner, Leaving
from retoma.engine.store import breaker, budget
from retoma.engine.store.hints import Hint
from retoma.secret import redact_text
from retoma.toolkit.tools import Tools
from retoma.words import say

KIND: Final = "embeddings.question"
ASK: Final = "pedir"
KEEP: Final = "guardar"
SLOTS: Final = 16  # questions that one process pays for at the same time
# Seconds between two looks at a question that somebody else has in hand: some 15 in all.
LOOKS: Final = (0.02, 0.05, 0.1, 0.2, *(0.4,) * 36)
GATES: Final = (budget.GATE, breaker.GATE)  # behind them a question would wait for hours
OTHER: Final = Skip(say("it was asked of another model"))
LATE: Final = Skip(say("whoever asked it waits no longer"))


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it: nothing is said where its vector is kept."""

    refused: str | None = None  # by which code, for what the question is
    failed: str | None = None


def kinds_of(questions: "Questions") -> list[Kind]:

    @job(
        name=KIND,
        application="embeddings",
        priority=-10,
        retry=Retry(attempts=1),
        codes=CODES,
        timeout="2m",
        limit=Limit(1, key=_same),
    )
    async def question(ctx: Context, asked: Asked) -> Any:
        return await questions.tell(ctx, asked)

    made: list[Any] = [question]
    return [each.kind for each in made]


def _same(asked: Asked) -> str:
    """Who asks the same goes behind the first, and reads what that one paid for."""
    return asked.hash


class Questions:
    """One for a process: the story of a question, and whoever has it told."""

    def __init__(
        self,
        tools: Tools,
        provider: Provider | None = None,
        looks: Sequence[float] = LOOKS,
    ) -> None:
        self._tools = tools
        self._looks = looks
        self._given = provider
        self._runner: HintedRunner | None = None

    # — who asks —

    async def vector_of(self, text: str, *, actor: str) -> bytes | ItemRefused:
        """As it is kept, or had now for money. IllegalMove where a budget or a breaker forbids that,
        Transient where it came to nothing."""
        asked = Asked(text, self._hash(text))
        kept = await self._kept(asked.hash)
        if kept is not None:
            return kept
        app = self._tools.retoma
        made = await app.submit(KIND, asked, actor=actor)
        told = _told(await self._ended(made.id, actor))
        if told.refused is not None:
            return ItemRefused.by(Refusal(told.refused))
        kept = await self._kept(asked.hash)
        if kept is None:
            raise Transient(told.failed or say("nobody has made a vector of the question"))
        return kept

    async def _ended(self, job: int, actor: str) -> Job:
        """Nobody goes on with a question that nobody waits for."""
        app = self._tools.retoma
        for look in self._looks:
            heeded = await self._heeded(job)
            seen = await app.get(job)
            if seen.ended:
                return seen
            shut = seen.aside is not None and seen.aside.startswith(GATES)
            if shut or heeded is not Heeded.PASSED:
                break
            await app.clock.sleep(look)
        await app.cancel(job, actor=actor)
        failed = await self._failed(job)
        if failed is None and seen.aside is not None:
            raise IllegalMove(
                say("this question was not paid for: {gate} is shut", gate=seen.aside)
            )
        raise Transient(failed or say("nobody has asked the provider for the question yet"))

    async def _failed(self, job: int) -> str | None:
        """What its call said that came to nothing; None: there was no call."""
        for step in await self._tools.retoma.steps(job):
            if step.name == ASK and step.state == StepState.FAILED:
                return str(json.loads(step.value or "{}").get("error", ""))
        return None

    async def _heeded(self, job: int) -> Heeded:
        if self._runner is None:
            settings = self._tools.settings
            self._runner = await self._tools.retoma.hinted(
                name=f"{settings.runner_name} (search)",
                slots=SLOTS,
                lease=settings.lease,
                beat=settings.beat,
            )
        try:
            return await self._runner.heed(Hint(KIND, job))
        except Leaving:
            return Heeded.PASSED

    # — the story —

    async def tell(self, ctx: Context, asked: Asked) -> Told | Skip:
        if asked.hash != self._hash(asked.text):
            return OTHER
        if await self._kept(asked.hash) is not None:
            return Told()
        if ctx.epoch > 1:
            return LATE
        async with ctx.breaker(PROVIDER), ctx.rate(PROVIDER, adaptive=True):
            try:
                refused = await ctx.step(
                    ASK,
                    partial(self._ask, ctx, asked),
                    once=True,
                    unknown=Unknown.REPEAT,
                    pays=self._provider.name,
                )
            except Permanent as error:  # whoever asked is told; no list of the dead is
                return Told(failed=redact_text(str(error)))
        return Told(refused=refused)

    async def _ask(self, ctx: Context, asked: Asked) -> str | None:
        """The code it is refused by, if it is."""
        made = await self._provider.embed([asked.text], InputType.QUERY)
        ctx.cost(
            provider=self._provider.name,
            model=made.used.model,
            usd=made.used.usd,
            input_tokens=made.used.input_tokens,
        )
        [item] = made.items
        if isinstance(item, ItemRefused):
            return item.code
        by = self._provider
        model = Model(by.model, by.version, by.dims)
        await ctx.write(KEEP, store.questions.keep, asked, model, item, ctx.job)
        return None

    # — within —

    @property
    def _provider(self) -> Provider:
        return self._given or self._tools.one(build_provider)

    def _hash(self, text: str) -> str:
        by = self._provider
        input_type = InputType.QUERY if by.asymmetric else None
        return content_hash(text, by.model, by.version, by.dims, input_type)

    async def _kept(self, hash_: str) -> bytes | None:
        database = await self._tools.retoma.database()
        return await database.read(lambda tx: store.questions.get(tx, hash_))


def _told(ended: Job) -> Told:
    told = json.loads(ended.result or "null")
    return Told(**told) if isinstance(told, dict) else Told()
