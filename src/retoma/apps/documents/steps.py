"""The verbs of a document: read in a child, classified once, never paid for twice.

Two minutes are for the work of one attempt, half of them for reading and half for the model: the wait
for a free child is not the document's, or one endless file would cost its neighbours their attempts. What
went wrong is told by its code alone, never in the words of a library or a model: those may quote (C8).
"""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final

from retoma.apps.documents import store
from retoma.apps.documents.clients.openrouter import (
    PROMPT_VERSION,
    Answer,
    Classifier,
    Rejected,
    Used,
)
from retoma.apps.documents.contents import Contents
from retoma.apps.documents.model import (
    CODES,
    KIND,
    MOST_RETRIES,
    Classified,
    ProjectRules,
    meaning_of,
)
from retoma.apps.documents.store.documents import TakenUp, Turn, Wanted
from retoma.apps.documents.store.executions import Ask
from retoma.codec import Undecodable, Unstorable
from retoma.db import Full, ReplyLost, Transaction
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.isolation.isolate import ChildDied
from retoma.engine.isolation.scratch import sweep
from retoma.engine.rules.errors import (
    Action,
    ErrorClass,
    LeaseLost,
    NotFound,
    Permanent,
    Refused,
    Transient,
)
from retoma.engine.rules.gates import Limit
from retoma.engine.rules.outcome import Snooze, Unknown, Unwound
from retoma.engine.rules.retry import Retry, code_of
from retoma.engine.writing.coalescer import Together
from retoma.secret import Secret
from retoma.toolkit.readers.reading import MEMORY, Read, read_file
from retoma.toolkit.tools import Tools

READING: Final = 60.0  # seconds in a child, by the clock on the wall
PROCESSOR: Final = 45.0  # seconds of its processor
ASKING: Final = 55.0  # seconds for the model's answer
BACKSTOP: Final = "15m"  # of an attempt, its waits for a child or for the rate included
OPENROUTER: Final = "documents.openrouter"
TIDY: Final = "documents.tidy"  # files that came in and that no execution has named since
READ: Final = "ler"
CLASSIFY: Final = "classificar"
ANOTHER_ASKS: Final = 2.0  # seconds until a document looks again what another was answered
NO_ROOM: Final = 1.0  # seconds until a database that is full is asked again


def stories(tools: Tools) -> list[Kind]:
    """The kinds of this application, made with these tools."""
    documents = Documents(tools)

    @job(
        name=KIND,
        application="documents",
        # How often one may fail is its project's to say, and the story's to keep.
        retry=Retry(attempts=2 + MOST_RETRIES, base=5.0, factor=2.0, cap=300.0, jitter=0.0),
        codes=CODES,
        timeout=BACKSTOP,
        limit=Limit(1, key=_same),
    )
    async def document(ctx: Context, ask: Ask) -> Classified:
        return await documents.tell(ctx, ask.document)

    @job(name=TIDY, application="documents")
    async def tidy(_: Context) -> int:
        await asyncio.get_running_loop().run_in_executor(None, sweep)
        return await Contents(tools.retoma).drop_unneeded()

    made: list[Any] = [document, tidy]
    return [each.kind for each in made]


def _same(ask: Ask) -> str | None:
    """Documents with the same content go one by one: the first is paid for, the others read of it."""
    return ask.same


async def watch_over(tools: Tools) -> None:
    """Tell of executions that do not move, and end those that were resumed too often."""
    database = await tools.retoma.database()
    if await database.read(store.executions.find_stuck):
        await tools.retoma.write(lambda tx: store.executions.watch_over(tx, actor="watchdog"))


class Documents:
    """The story of a document."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._made: Classifier | None = None
        self._contents = Contents(tools.retoma)
        self._beginning = Together(self._all_taken_up)

    async def tell(self, ctx: Context, document: int) -> Classified:
        begun = await self._beginning.asked(Turn(document, ctx.job, ctx.epoch))
        rules = begun.wanted.rules
        if (
            ctx.attempt > rules.attempts
        ):  # the last one did not even come to say what went wrong
            raise Permanent(meaning_of("timeout"), code="timeout")
        try:
            return await self._classified(ctx, begun)
        except Rejected as error:
            await self._block(begun.wanted, error)
            raise _told(error, last=True) from None
        except (LeaseLost, Refused, Unstorable, Undecodable):
            raise
        except Exception as error:  # noqa: BLE001 — whatever it was is told by its code
            raise _told(error, last=ctx.attempt >= rules.attempts) from None

    async def _block(self, wanted: Wanted, error: Rejected) -> None:
        """Have the other documents of its execution wait too: nothing is the matter with any of them."""
        await self._tools.retoma.write(
            lambda tx: store.executions.block(
                tx, wanted.execution, wanted.epoch, error.code, error.words
            )
        )

    async def _classified(self, ctx: Context, begun: TakenUp) -> Classified:
        wanted = begun.wanted
        if not ctx.kept(CLASSIFY):
            if begun.answer is not None:
                return _judged(begun.answer, wanted.rules)
            if wanted.blocked is not None:
                raise Permanent(meaning_of(wanted.blocked), code=wanted.blocked)
            if not begun.ours:  # it will be answered, or over, before long
                raise Unwound(Snooze(ANOTHER_ASKS))
        read = await self._read(ctx, wanted)
        answer = await self._asked(ctx, read, wanted.rules)
        if answer.label not in wanted.rules.names:
            raise Permanent(meaning_of("unknown_label"), code="unknown_label")
        return _judged(_of(answer, read), wanted.rules)

    async def _read(self, ctx: Context, wanted: Wanted) -> Read:
        how: dict[str, Any] = {
            "timeout": READING,
            "cpu": PROCESSOR,
            "memory": MEMORY,
            "where": "confined",
        }
        ocr = str(wanted.rules.ocr)
        if ctx.kept(READ):
            return await ctx.step(READ, read_file, "", wanted.name, ocr, **how)
        try:
            async with self._contents.on_disk(wanted.sha256, wanted.size) as path:
                return await ctx.step(READ, read_file, str(path), wanted.name, ocr, **how)
        except NotFound:
            raise Permanent(meaning_of("no_content"), code="no_content") from None

    async def _all_taken_up(self, turns: Sequence[Turn]) -> Sequence[TakenUp | NotFound]:
        """In one transaction; done again where nobody knows whether it was, or there was no room."""
        models = self._tools.settings.openrouter_models
        database = await self._tools.retoma.database()

        def take_up(tx: Transaction) -> list[TakenUp | NotFound]:
            return store.documents.take_up(
                tx, turns, lambda rules: rules.recipe(PROMPT_VERSION, models)
            )

        while True:
            try:
                return await database.write(take_up, verb="take_up")
            except (ReplyLost, Full):
                await self._tools.retoma.clock.sleep(NO_ROOM)

    # — the model —

    async def _asked(self, ctx: Context, read: Read, rules: ProjectRules) -> Answer:
        """Within the rate that all runners share; done again only where nobody knows whether it was."""

        async def ask() -> Answer:
            return await self._answer(ctx, read.text, rules)

        within = nullcontext() if ctx.kept(CLASSIFY) else ctx.rate(OPENROUTER, adaptive=True)
        try:
            async with ctx.breaker(OPENROUTER), within:
                return await ctx.step(
                    CLASSIFY, ask, once=True, unknown=Unknown.REPEAT, pays="openrouter"
                )
        except Unwound as left:
            # A late answer counts against the service; but until that is known to be down it is
            # this document's own, or one that is always late would be paid for time and again.
            if isinstance(left.__cause__, TimeoutError) and isinstance(left.outcome, Snooze):
                raise left.__cause__ from None
            raise

    async def _answer(self, ctx: Context, text: str, rules: ProjectRules) -> Answer:
        def used(cost: Used) -> None:
            ctx.cost(
                provider="openrouter",
                model=cost.model,
                usd=cost.usd,
                input_tokens=cost.input_tokens,
                output_tokens=cost.output_tokens,
            )

        try:
            async with asyncio.timeout(ASKING):
                return await self._classifier().classify(text, rules, used)
        except (Transient, Permanent) as error:
            if _is_outage(error) or isinstance(error, Rejected):
                raise
            # The service answered, and badly: that is this document's, no outage of the service.
            raise Permanent(meaning_of(error.code), code=error.code) from None

    def _classifier(self) -> Classifier:
        if self._made is None:
            settings = self._tools.settings
            if settings.openrouter_key is None:
                raise Rejected("", code="no_key")
            key = Secret(settings.openrouter_key.get_secret_value())
            self._made = Classifier(
                self._tools.out, settings.openrouter_url, key, settings.openrouter_models
            )
        return self._made


def _of(answer: Answer, read: Read) -> Classified:
    return Classified(
        label=answer.label,
        confidence=answer.confidence,
        justification=answer.justification,
        model=answer.model,
        cut=read.cut or answer.left_out > 0,
        pages=read.pages,
    )


def _judged(classified: Classified, rules: ProjectRules) -> Classified:
    """Whether a person should look, as this project wants it."""
    return replace(classified, review=classified.confidence < rules.least_confidence)


def _is_outage(error: Transient | Permanent) -> bool:
    """Of the service, or of the way there: no document's fault, and waited out by all of them."""
    code = CODES.get(error.code)
    data = code is not None and code.error_class is ErrorClass.DATA
    return isinstance(error, Transient) and not data


def _told(error: Exception, *, last: bool) -> Exception:
    """What went wrong, by its code; tried again while its project lets it be."""
    code = code_of(error)
    known = CODES.get(code)
    again = not isinstance(error, Permanent) if known is None else known.action is Action.RETRY
    message = meaning_of(code)
    if isinstance(error, ChildDied):
        message = f"{message} ({error.signal or error.exit_code})"
    if isinstance(error, Rejected) and error.words:
        message = f"{message}: {error.words}"
    told: Exception
    if again and not last:
        wait = error.retry_after if isinstance(error, Transient) else None
        told = Transient(message, code=code, retry_after=wait)
    else:
        told = Permanent(message, code=code)
    if isinstance(error, ChildDied):
        told.add_note(error.stack)
    # Its frames name our lines and no values; its words are left behind.
    return told.with_traceback(error.__traceback__)
