"""The story of a document: cut once, each text embedded once whoever wants it, then found.

What a document lacks is taken up a slice at a time, by a claim on each text that holds as long as this
attempt does; texts of all jobs of this runner go out in common calls. Nobody waits for another while he
has texts in hand. A text that the provider refuses ends its own document alone.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, Final

from retoma.apps.embeddings import store
from retoma.apps.embeddings.batcher import Batcher, Share
from retoma.apps.embeddings.chunks import Chunk, chunked, content_hash
from retoma.apps.embeddings.model import (
    ATTEMPTS,
    CODES,
    KIND,
    MOST_CHUNKS,
    PROVIDER,
    STATUS,
    Ask,
    Done,
    Model,
)
from retoma.apps.embeddings.providers import InputType, ItemRefused, Provider, build_provider
from retoma.apps.embeddings.store.chunks import Cut, Edition, Keeping, Wish
from retoma.apps.embeddings.store.documents import Wanted
from retoma.codec import digest
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.rules.errors import Action, Permanent, Transient
from retoma.engine.rules.job import Held
from retoma.engine.rules.outcome import Skip, Snooze, Unknown, Unwound
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.engine.traces import TRACES
from retoma.engine.writing.coalescer import Together
from retoma.toolkit.tools import Tools
from retoma.words import say

ASK: Final = "pedir"
KEEP: Final = "guardar"
TIDY: Final = "embeddings.tidy"
TRIES: Final = Retry(attempts=ATTEMPTS, base=2.0, cap=300.0)
LOOKS: Final = (0.1, 2.0)  # seconds between two looks at texts that others have in hand
BEING_TOLD: Final = 1.0  # seconds until a retried document looks whether the webhook was told
GONE: Final = Skip(say("the document was deleted"))
PASSED: Final = Skip(say("the document was embedded anew meanwhile"))
LONG: Final = 200_000  # characters: cutting more than that would keep the loop from others


def stories(tools: Tools) -> list[Kind]:
    """The kinds of this application, made with these tools."""
    return kinds_of(tools, Documents(tools))


def kinds_of(tools: Tools, documents: "Documents") -> list[Kind]:

    def log_fields(ask: Ask, attempt: int) -> Mapping[str, Any]:
        """What every line of the document's log says, besides the engine's own `job` and `status`."""
        worker = tools.settings.runner_name
        told = {"workerId": worker, "jobType": KIND, "documentId": ask.document}
        return told | {"attempts": attempt}

    @job(
        name=KIND,
        application="embeddings",
        log_fields=log_fields,
        log_settled=_settled_fields,
        retry=TRIES,
        codes=CODES,
        timeout="15m",
    )
    async def document(ctx: Context, ask: Ask) -> Any:
        if ctx.generation > 1:
            await documents.follow_again(ctx)
        return await documents.tell(ctx, ask.document)

    @job(name=TIDY, application="embeddings")
    async def tidy(_: Context) -> int:
        return await tools.retoma.write(store.chunks.tidy)

    made: list[Any] = [document, tidy]
    return [each.kind for each in made]


def _settled_fields(job: int, state: State, ms: float) -> Mapping[str, Any]:
    """With these the line has every field that the document names."""
    return {"jobId": job, "status": str(STATUS[state]), "durationMs": round(ms)}


def model_of(provider: Provider) -> Model:
    return Model(provider.model, provider.version, provider.dims)


class Documents:
    """The story of a document, with what its runner has for all of them."""

    def __init__(self, tools: Tools, provider: Provider | None = None) -> None:
        self._tools = tools
        self._provider = provider
        self._batcher: Batcher | None = None
        self._wanted = Together(self._wanted_of)

    async def tell(self, ctx: Context, document: int) -> Any:
        wanted = await self.wanted(document)
        if wanted is None:
            return GONE
        provider = self._made()
        if model_of(provider) != wanted.model:
            raise Permanent(
                say(
                    "its collection is of the model {wanted}, the provider is of {found}: embed the"
                    " collection anew, or set the other back",
                    wanted=wanted.model,
                    found=model_of(provider),
                ),
                code="other_model",
            )
        return await _Telling(self, ctx, wanted, provider).tell()

    async def follow_again(self, ctx: Context) -> None:
        """Have the webhook told again once the batch of this document, which was retried, has ended."""
        actor = f"job {ctx.job}"
        follow = partial(store.documents.follow_again, job=ctx.job, actor=actor)
        if not await self._tools.retoma.write(follow):
            raise Unwound(Snooze(BEING_TOLD))

    def _made(self) -> Provider:
        return self._provider or self._tools.one(build_provider)

    def batcher(self, provider: Provider) -> Batcher:
        if self._batcher is None:
            self._batcher = Batcher(provider)
        return self._batcher

    async def wanted(self, document: int) -> Wanted | None:
        return await self._wanted.asked(document)

    async def _wanted_of(self, documents: Sequence[int]) -> Sequence[Wanted | None]:
        found: Mapping[int, Wanted] = await self.read(
            partial(store.documents.wanted_of, documents=documents)
        )
        return [found.get(document) for document in documents]

    async def read(self, fn: Any) -> Any:
        return await (await self._tools.retoma.database()).read(fn)


class _Telling:
    """One attempt at one document."""

    def __init__(
        self, house: Documents, ctx: Context, wanted: Wanted, provider: Provider
    ) -> None:
        self._house = house
        self._ctx = ctx
        self._wanted = wanted
        self._provider = provider
        self._of = Edition(wanted.id, wanted.edition)
        self._held = Held(ctx.job, ctx.epoch)
        self._left: dict[
            str, str
        ] = {}  # texts that are not known to have vectors, by their hashes
        self._embedded = 0
        self._end: Done | Skip | None = None

    async def tell(self) -> Done | Skip:
        cut = await self._cut()
        look, longest = LOOKS
        while self._end is None:
            if not self._left:
                await self._finish()
            elif mine := await self._take(cut):
                await self._embed(mine)
            elif mine is None:  # others have all of it in hand
                await self._ctx.pause(look)
                look = min(2 * look, longest)
            cut = None
        return self._end

    # — the chunks —

    async def _cut(self) -> Cut | None:
        """What is to be written down of it, once: nothing where that was done before."""
        if self._wanted.is_cut:
            self._left = await self._house.read(partial(store.chunks.texts_of, of=self._of))
            return None
        chunks = await self._chunked()
        self._left = {hash_: chunk.text for chunk, hash_ in chunks}
        return Cut(self._of, chunks)

    async def _chunked(self) -> list[tuple[Chunk, str]]:
        if len(self._wanted.text) <= LONG:
            return _hashed(self._wanted, self._input_type)
        work = partial(_hashed, self._wanted, self._input_type)
        return await asyncio.get_running_loop().run_in_executor(None, work)

    @property
    def _input_type(self) -> InputType | None:
        """As far as the vector of a text depends on it."""
        return InputType.DOCUMENT if self._provider.asymmetric else None

    async def _take(self, cut: Cut | None) -> Mapping[str, str] | None:
        """Texts that this attempt has in hand now; None where others have them all."""
        hashes = [*islice(self._left, self._provider.most)]
        last = len(hashes) == len(self._left)
        wish = Wish(self._held, self._of, hashes, last, cut)
        size = len(hashes) if cut is None else len(cut.chunks)
        taken = await self._ctx.share(store.chunks.take, wish, size=size)
        if taken is None:
            self._end = GONE
            return {}
        self._ended(taken.done)
        mine = {hash_: self._left[hash_] for hash_ in hashes if hash_ in taken.mine}
        for hash_ in taken.made:
            del self._left[hash_]
        return mine if mine or taken.made else None

    def _ended(self, chunks: int | None) -> None:
        """With what, where it lacks nothing any more."""
        if chunks is not None:
            self._end = Done(chunks, self._embedded)

    async def _finish(self) -> None:
        self._ended(await self._ctx.share(_finished, self._of))
        if self._end is not None:
            return
        now = await self._house.wanted(self._of.document)
        if now is not None and now.has <= self._of.number:
            raise Transient(say("vectors of it went away while it was embedded"))
        self._end = GONE if now is None else PASSED

    # — the vectors —

    async def _embed(self, texts: Mapping[str, str]) -> None:
        """Whatever ends this attempt meanwhile also ends what it has in hand: others take that up."""
        if self._provider.paid:
            refused = await self._pay(texts)
        else:
            refused = await self._kept(texts, await self._asked(texts))
        if refused:
            raise _refusal(refused, len(texts))

    async def _pay(self, texts: Mapping[str, str]) -> list[ItemRefused]:
        """That it is about to be paid for is committed first; that it was, once its vectors are kept.

        Where nobody knows whether it was paid for, what has no vector is asked for again.
        """
        ctx = self._ctx
        refused: list[ItemRefused] = []

        async def ask() -> int:
            share = await self._asked(texts)
            ctx.cost(
                provider=self._provider.name,
                model=share.model,
                usd=share.usd,
                input_tokens=share.input_tokens,
            )
            refused[:] = await self._kept(texts, share)
            return len(texts) - len(refused)

        try:
            async with ctx.breaker(PROVIDER):
                await ctx.step(
                    ASK,
                    ask,
                    key=f"{ctx.epoch}/{_short(texts)}",
                    once=True,
                    unknown=Unknown.REPEAT,
                    pays=self._provider.name,
                )
        except Unwound as left:
            # A call that failed is an attempt of each document that it served, and says so in its
            # timeline. Once the provider is known to be down it costs nobody anything.
            error = left.__cause__
            if isinstance(error, Exception) and isinstance(left.outcome, Snooze):
                raise error from None
            raise
        return refused

    async def _asked(self, texts: Mapping[str, str]) -> Share:
        ctx = self._ctx
        rate = partial(ctx.rate, PROVIDER, adaptive=True) if self._provider.paid else None
        batcher = self._house.batcher(self._provider)
        return await batcher.embed([*texts.values()], ctx.may_go_out, rate)

    async def _kept(self, texts: Mapping[str, str], share: Share) -> list[ItemRefused]:
        """Keep what was made; what was refused."""
        made = {
            hash_: item
            for hash_, item in zip(texts, share.items, strict=True)
            if isinstance(item, bytes)
        }
        for hash_ in made:
            del self._left[hash_]
        last = not self._left
        keeping = Keeping(self._held, self._of, self._wanted.model, made, last)
        with _span("vectors.store", n=len(made), document=self._wanted.id):
            done = await self._written(keeping)
        self._embedded += len(made)
        self._ended(done)
        return [item for item in share.items if isinstance(item, ItemRefused)]

    async def _written(self, keeping: Keeping) -> int | None:
        """A slice of a long document is a step: where it got on it is no poison, whoever died with it (E10)."""
        if keeping.last:
            size = len(keeping.vectors)
            return await self._ctx.share(store.chunks.keep, keeping, size=size)
        key = f"{self._ctx.epoch}/{_short(keeping.vectors)}"
        return await self._ctx.write(KEEP, _kept_alone, keeping, key=key)


def _kept_alone(tx: Transaction, keeping: Keeping) -> int | None:
    [done] = store.chunks.keep(tx, [keeping])
    return done


def _finished(tx: Transaction, of: Sequence[Edition]) -> list[int | None]:
    done = store.chunks.finish(tx, of)
    return [done.get(each) for each in of]


def _refusal(refused: Sequence[ItemRefused], of: int) -> Transient | Permanent:
    """What the provider got wrong it may get right; what a text is it stays."""
    code = refused[0].code
    known = CODES.get(code)
    again = known is not None and known.action is Action.RETRY
    said = say(
        "{n} of {of} chunks were refused: {why}", n=len(refused), of=of, why=refused[0].message
    )
    return Transient(said, code=code) if again else Permanent(said, code=code)


def _hashed(wanted: Wanted, input_type: InputType | None) -> list[tuple[Chunk, str]]:
    chunks = chunked(wanted.text, wanted.rule)
    if not chunks:
        raise Permanent(say("the text has nothing in it"), code="empty_text")
    if len(chunks) > MOST_CHUNKS:
        raise Permanent(
            say("{n} chunks, {most} at most", n=len(chunks), most=MOST_CHUNKS), code="too_large"
        )
    model = wanted.model
    return [
        (each, content_hash(each.text, model.name, model.version, model.dims, input_type))
        for each in chunks
    ]


def _short(texts: Iterable[str]) -> str:
    return digest(" ".join(sorted(texts)))[:16]


def _span(name: str, **facts: Any) -> AbstractContextManager[Any]:
    traces = TRACES.get()
    return nullcontext() if traces is None else traces.span(name, **facts)
