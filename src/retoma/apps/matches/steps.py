"""The verbs of a round: its matches are found once, each is fetched, read and stored whole, or told of.

Whatever keeps a match from being stored is written down with its evidence before it is raised: the page,
what failed on it, status and headers. What is not published or not over yet is looked at again later, at
a time that is told, and costs no attempt.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from retoma import db
from retoma.apps.matches import store
from retoma.apps.matches.clients.fetching import Fetched, Fetcher
from retoma.apps.matches.clients.parsers import checked_layouts
from retoma.apps.matches.clients.parsers.apart import read_match, read_round
from retoma.apps.matches.model import (
    ATTEMPTS,
    CODES,
    COMPLETE,
    DISCOVERY,
    MATCH,
    REFRESH,
    MatchStatus,
    PageRefused,
    RoundShort,
)
from retoma.apps.matches.schemas import MatchRef
from retoma.apps.matches.sites import Site, site_of
from retoma.apps.matches.store.games import Refresh
from retoma.apps.matches.store.runs import Ask, Complete, Look
from retoma.apps.matches.store.tasks import Keeping, Stored, Task
from retoma.codec import encode
from retoma.engine import store as engine
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.kinds import Kind, job
from retoma.engine.ports import chance
from retoma.engine.rules.errors import LeaseLost, NotFound, Permanent, Refused, Transient
from retoma.engine.rules.outcome import Snooze, Unknown
from retoma.engine.rules.retry import Retry
from retoma.engine.run.transaction import Transaction
from retoma.engine.writing.coalescer import Together
from retoma.outbound import Policy
from retoma.secret import Secret
from retoma.toolkit.tools import Tools
from retoma.words import say

T = TypeVar("T")

FOUND: Final = "descobrir"
FOUND_SOME: Final = "descobrir-parte"
REPLACED: Final = "substituir"
SKIPPED: Final = "pular"
DATED: Final = "datar"
NOTED: Final = "anotar"
TRIES: Final = Retry(attempts=ATTEMPTS, base=5.0, cap=300.0)
PATIENCE: Final = Retry(attempts=15, base=2.0, cap=600.0)  # of whoever is told
LONGEST: Final = 500  # characters of a message that is kept
PAGE: Final = "pagina.html"
KNOBS: Final = ("matches.layouts", "matches.proxies", "matches.patience")


def stories(tools: Tools) -> list[Kind]:
    """The kinds of this application, made with these tools."""
    matches = Matches(tools)

    how: dict[str, Any] = {"application": "matches", "retry": TRIES, "codes": CODES}

    @job(name=DISCOVERY, timeout="5m", log_fields=_of_run, **how)
    async def discovery(ctx: Context, look: Look) -> Any:
        return await matches.discover(ctx, look.run)

    @job(name=MATCH, timeout="5m", log_fields=_of_match, **how)
    async def match(ctx: Context, ask: Ask) -> Any:
        return await matches.scrape(ctx, ask.task)

    @job(name=COMPLETE, application="matches", retry=PATIENCE, log_fields=_of_run)
    async def complete(ctx: Context, told: Complete) -> int | None:
        return await matches.tell(ctx, told)

    @job(name=REFRESH, timeout="5m", **how)
    async def refresh(ctx: Context, asked: Refresh) -> Any:
        return await matches.refresh(ctx, asked)

    made: list[Any] = [discovery, match, complete, refresh]
    return [each.kind for each in made]


# The document's three names, in every line about a task.


def _of_match(ask: Ask, attempt: int) -> dict[str, Any]:
    return {"job_id": ask.run, "match_id": ask.match, "attempt_count": attempt}


def _of_run(look: Look | Complete, attempt: int) -> dict[str, Any]:
    return {"job_id": look.run, "attempt_count": attempt}


# How what came of a try is written down, of a task or of a run.
Note = Callable[[Transaction, int, str | None, str | None, str | None], None]


@dataclass(frozen=True, slots=True)
class Subject:
    """Of whose tries somebody takes notes."""

    of: int
    note: Note
    log: Any


@dataclass(frozen=True, slots=True)
class Way:
    """How pages are had and read now: by which parsers, through whose proxies."""

    layouts: tuple[str, ...]
    proxies: str  # a pool; empty: through none
    patience: float  # seconds, for all attempts together


class Matches:
    """The stories of a round."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._fetcher = Fetcher(tools)
        self._chance = chance()
        self._wanted = Together(self._wanted_of)

    # — a round —

    async def discover(self, ctx: Context, run: int) -> Any:
        wanted, way = await self._looked_up(partial(store.runs.run_of, run=run))
        if ctx.kept(FOUND):
            return {"new": await ctx.write(FOUND, store.runs.discovered, run, [])}
        of, site = wanted.of, self._site(wanted.of.league, way)
        log = ctx.log.bind(round=str(of))
        subject = Subject(run, store.runs.note, log)
        url = site.round_url(of.season, of.round)
        fetched = await self._fetched(ctx, subject, site, url, way)
        if fetched is None:
            return await self._later(ctx, subject, site, None, None)
        try:
            page = await read_round(
                ctx.read_apart,
                site,
                fetched.body,
                season=of.season,
                round_=of.round,
                charset=fetched.charset,
            )
            return await self._found(ctx, run, list(page.matches))
        except PageRefused as refused:
            await self._failed(ctx, subject, refused, fetched)
            raise

    async def _found(self, ctx: Context, run: int, listed: list[MatchRef]) -> Any:
        """Its matches are looked for, also where some are missing: then the round is not whole yet."""
        short = await self._read(partial(store.runs.shortfall, run=run, found=listed))
        name, key = (FOUND, "") if short is None else (FOUND_SOME, str(ctx.epoch))
        new = await ctx.write(name, store.runs.discovered, run, listed, key=key)
        ctx.log.info("round.discovered", matches=len(listed), new=new)
        if short is not None:
            raise RoundShort(problems=[short])
        return {"matches": len(listed), "new": new}

    # — a match —

    async def scrape(self, ctx: Context, task: int) -> Any:
        wanted, way = await self._wanted.asked(task)
        log = ctx.log
        if wanted.done is not None:
            return _told(Stored(wanted.done))
        if wanted.there is not None:
            there = await ctx.write(SKIPPED, store.tasks.skip, task, key=str(ctx.epoch))
            log.info("match.skipped", partida=there.partida)
            return _told(there)
        subject = Subject(task, store.tasks.note, log)
        try:
            return await self._scraped(ctx, wanted, subject, way)
        except (Transient, Permanent, LeaseLost, Refused):
            raise  # told of already, or no try of this task any more
        except Exception as error:
            flaw = Transient(
                say("{type}: its stack is in the timeline", type=type(error).__name__),
                code="exception",
            )
            await self._failed(ctx, subject, flaw, None)
            raise

    async def _scraped(self, ctx: Context, wanted: Task, subject: Subject, way: Way) -> Any:
        site = self._site(wanted.of.league, way)
        if site.match_url(wanted.url) != wanted.url:
            refused = Permanent(say("its address is none of the site's"), code="OFF_SITE")
            await self._failed(ctx, subject, refused, None)
            raise refused
        fetched = await self._fetched(ctx, subject, site, wanted.url, way)
        if fetched is None:
            return await self._later(ctx, subject, site, None, wanted.kickoff)
        try:
            page = await read_match(
                ctx.read_apart,
                site,
                fetched.body,
                wanted=wanted.wanted,
                charset=fetched.charset,
            )
        except PageRefused as refused:
            await self._failed(ctx, subject, refused, fetched)
            raise
        if page.status is not MatchStatus.FINISHED:
            if page.kickoff != wanted.kickoff:
                # It was put off: what a later page says is held against this day.
                await ctx.write(
                    DATED, store.tasks.date, wanted.id, page.kickoff, key=str(ctx.epoch)
                )
            return await self._later(ctx, subject, site, page.status, page.kickoff)
        keeping = Keeping(wanted, page, f"job {ctx.job}")
        stored = await ctx.share(store.tasks.keep, keeping, size=1 + len(page.events))
        subject.log.info("match.stored", partida=stored.partida, already=stored.already)
        return _told(stored)

    async def _wanted_of(self, tasks: Sequence[int]) -> Sequence[tuple[Task, Way] | Exception]:
        found, way = await self._looked_up(partial(store.tasks.tasks_of, tasks=tasks))
        return [
            (found[task], way) if task in found else store.tasks.unknown(task) for task in tasks
        ]

    # — a stored match, asked for again —

    async def refresh(self, ctx: Context, asked: Refresh) -> Any:
        """What its page says now takes the place of what is stored; the same again changes nothing."""
        there, way = await self._looked_up(partial(store.games.kept_of, partida=asked.partida))
        site = self._site(there.of.league, way)
        if site.match_url(there.url) != there.url:
            raise Permanent(say("its address is none of the site's"), code="OFF_SITE")
        subject = Subject(asked.partida, store.games.note, ctx.log)
        fetched = await self._fetched(ctx, subject, site, there.url, way)
        if fetched is None:
            raise Transient(say("{url}: is not published", url=there.url), code="NOT_PUBLISHED")
        try:
            page = await read_match(
                ctx.read_apart, site, fetched.body, wanted=there.wanted, charset=fetched.charset
            )
        except PageRefused as refused:
            await self._failed(ctx, subject, refused, fetched)
            raise
        if page.status is not MatchStatus.FINISHED:
            raise Permanent(
                say("its page says that it is {status}", status=page.status),
                code="NOT_FINISHED",
            )
        changed = await ctx.write(
            REPLACED, store.games.refreshed, asked, there.revision, page, f"job {ctx.job}"
        )
        ctx.log.info("match.refreshed", partida=asked.partida, changed=changed)
        return {"partida": asked.partida, "changed": changed}

    # — what every page may come to —

    async def _read(self, look: Callable[[db.Transaction], T]) -> T:
        return await (await self._tools.retoma.database()).read(look)

    async def _looked_up(self, look: Callable[[db.Transaction], T]) -> tuple[T, Way]:
        """What a story is about, and how pages are had and read, at one instant."""
        declared = self._tools.retoma.knobs.declared

        def read(tx: db.Transaction) -> tuple[T, Way]:
            layouts, proxies, patience = (
                engine.knobs.value(tx, declared, name) for name in KNOBS
            )
            return look(tx), Way(checked_layouts(layouts), proxies, patience)

        return await (await self._tools.retoma.database()).read(read)

    def _site(self, league: str, way: Way) -> Site:
        return site_of(league).at(self._tools.settings.matches_url).read_by(*way.layouts)

    async def _had(self, ctx: Context, site: Site, url: str, way: Way) -> Fetched:
        """Where every proxy is taken the job waits for one outside, and spends no attempt."""
        if not way.proxies:
            return await self._fetcher.fetch(site, url)
        try:
            async with ctx.use(way.proxies) as proxy:
                return await self._fetcher.fetch(site, url, proxy.value)
        except NotFound as error:  # a pool that nobody has declared, or that was removed
            raise Transient(f"matches.proxies: {error}", code="NO_PROXY") from error

    async def _fetched(
        self, ctx: Context, subject: Subject, site: Site, url: str, way: Way
    ) -> Fetched | None:
        """None: it is not published yet."""
        try:
            fetched = await self._had(ctx, site, url, way)
        except (Transient, Permanent) as error:
            await self._failed(ctx, subject, error, None)
            self._be_patient(ctx, error, way)
            raise
        failure = fetched.failure
        if failure is None:
            return fetched
        if failure.code == "NOT_PUBLISHED":
            return None
        await self._failed(ctx, subject, failure, fetched)
        self._be_patient(ctx, failure, way)
        raise failure

    def _be_patient(self, ctx: Context, error: Transient | Permanent, way: Way) -> None:
        """An outage lasts for minutes: the waits between the attempts make up the patience together,
        each twice the one before, with chance in them."""
        if isinstance(error, Transient):
            share = 2 ** (ctx.attempt - 1) / (2 ** (ATTEMPTS - 1) - 1)
            wait = way.patience * share * self._chance.uniform(0.75, 1.0)
            error.retry_after = max(wait, error.retry_after or 0.0)

    async def _later(
        self,
        ctx: Context,
        subject: Subject,
        site: Site,
        status: MatchStatus | None,
        kickoff: Any,
    ) -> Snooze:
        wait = site.look_again(status, kickoff, await self._read(engine.now))
        why = "NOT_PUBLISHED" if status is None else str(status)
        key = str(ctx.epoch)
        await ctx.write(NOTED, subject.note, subject.of, why, None, None, key=key)
        subject.log.info("match.not_yet", why=why, again_in=wait.total_seconds())
        return Snooze(wait)

    async def _failed(
        self,
        ctx: Context,
        subject: Subject,
        error: Transient | Permanent,
        fetched: Fetched | None,
    ) -> None:
        """What is needed to see why, and to read the page again once somebody knows better (R4)."""
        told: dict[str, Any] = {"code": error.code, "message": str(error)[:LONGEST]}
        if isinstance(error, PageRefused):
            told |= error.evidence()
        told |= {"attempt": ctx.attempt, "generation": ctx.generation}
        snapshot = None
        if fetched is not None:
            told |= fetched.evidence()
            snapshot = hashlib.sha256(fetched.body).hexdigest()
            await ctx.attach(PAGE, fetched.body, "text/html")
        note = (subject.of, None, encode(told), snapshot)
        await ctx.write(NOTED, subject.note, *note, key=str(ctx.epoch))
        subject.log.warning("match.failed", code=error.code, snapshot=snapshot)

    # — whoever waits —

    async def tell(self, ctx: Context, told: Complete) -> int | None:
        """That a round is complete, to the address that the operator has set; else to nobody."""
        where = self._tools.settings.matches_webhook
        if where is None:
            return None
        url = Secret(where.get_secret_value())
        house = await self._tools.retoma.database_id()
        again = f"-{told.time}" if told.time > 1 else ""
        key = f"{house}-round-{told.run}-{told.matches}{again}"

        async def posted() -> int:
            answer = await self._tools.out.post(
                Policy.toward("matches webhook", url.reveal()),
                url.reveal(),
                headers={"Idempotency-Key": key},
                json={"event": "round.complete", "key": key, **_plain(told)},
            )
            return answer.status

        return await ctx.step("avisar", posted, once=True, unknown=Unknown.REPEAT)


def _plain(told: Complete) -> dict[str, Any]:
    return {
        "job_id": told.run,
        "league": told.league,
        "season": told.season,
        "round": told.round,
        "matches": told.matches,
    }


def _told(stored: Stored) -> dict[str, Any]:
    return {"partida": stored.partida, "already": stored.already}
