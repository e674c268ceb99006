"""`retoma demo`: a batch at work, a runner killed in the middle, and a checked account of it.

The runners are started before anything else is imported: they boot while this process reads on.
"""

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from retoma.cli import world
from retoma.cli.exits import Exit, Stop
from retoma.cli.processes import RunnerProcess
from retoma.cli.world import World
from retoma.words import say

if TYPE_CHECKING:
    from retoma.cli.account import Account
    from retoma.cli.ads_world import AdsWorld
    from retoma.cli.documents_world import DocumentsWorld
    from retoma.cli.embeddings_world import EmbeddingsWorld
    from retoma.cli.matches_world import MatchesWorld
    from retoma.cli.quotes_world import QuotesWorld


@dataclass(frozen=True, slots=True)
class Size:
    """How large a demo is."""

    jobs: int
    pace: float  # seconds of a step, about
    slots: int  # of each runner
    workers: int  # of ads
    proxies: int
    missions: int
    quotes: int
    documents: int
    odd: int  # among the documents
    rounds: int  # of ten matches
    texts: int  # of ten chunks
    slowness: float  # of the services of all; 1: as slow as the real ones


NORMAL = Size(
    jobs=300,
    pace=0.25,
    slots=14,
    workers=3,
    proxies=4,
    missions=12,
    quotes=40,
    documents=30,
    odd=5,
    rounds=3,
    texts=200,
    slowness=0.3,
)
FAST = Size(
    jobs=120,
    pace=0.04,
    slots=14,
    workers=1,
    proxies=1,
    missions=3,
    quotes=24,
    documents=12,
    odd=1,
    rounds=1,
    texts=24,
    slowness=0.05,
)


def run(*, fast: bool, as_json: bool, seed: int) -> None:
    size = FAST if fast else NORMAL
    with world.opened("demo", slots=size.slots, anew=True) as place:
        account = asyncio.run(_demo(place, size, seed, quiet=as_json))
    _tell(account, place, as_json=as_json)
    if account.problems:
        raise Stop(
            Exit.FAILED,
            say("the demo broke a promise: {problems}", problems="; ".join(account.problems)),
        )


async def _demo(place: World, size: Size, seed: int, *, quiet: bool) -> "Account":
    runners: list[RunnerProcess] = []
    ads: AdsWorld | None = None
    quotes: QuotesWorld | None = None
    documents: DocumentsWorld | None = None
    matches: MatchesWorld | None = None
    embeddings: EmbeddingsWorld | None = None
    try:
        for name in ("runner 1", "runner 2"):
            runners.append(await place.start(name))  # noqa: PERF401 — each at once in the list
        from retoma.cli import (
            ads_world,
            documents_world,
            embeddings_world,
            matches_world,
            quotes_world,
        )
        from retoma.cli.board import board_for
        from retoma.cli.performance import perform, world_of

        wanted = world_of(seed, size.jobs, size.pace)
        ads = ads_world.AdsWorld(
            place.folder, ads_world.AdsSize(size.workers, size.proxies, size.missions), seed
        )
        lote = quotes_world.QuotesSize(size.quotes, size.slowness)
        quotes = quotes_world.QuotesWorld(place, lote, seed)
        files = documents_world.DocumentsSize(size.documents, size.odd, size.slowness)
        documents = documents_world.DocumentsWorld(place, files, seed)
        season = matches_world.MatchesSize(size.rounds, size.slowness)
        matches = matches_world.MatchesWorld(place, season, seed)
        texts = embeddings_world.EmbeddingsSize(size.texts)
        embeddings = embeddings_world.EmbeddingsWorld(place, texts, seed)
        board = board_for(quiet=quiet)
        others = (quotes, documents, matches, embeddings)
        return await perform(place, wanted, runners, ads, others, board)
    finally:
        if embeddings is not None:
            embeddings.kill()
        if matches is not None:
            matches.kill()
        if documents is not None:
            documents.kill()
        if quotes is not None:
            quotes.kill()
        if ads is not None:
            ads.kill()
        for runner in runners:
            runner.kill()
            await runner.ended()


def _tell(account: "Account", place: World, *, as_json: bool) -> None:
    from retoma.cli.account import print_account
    from retoma.cli.desk import print_json

    if as_json:
        print_json({"ok": not account.problems, **asdict(account)})
    else:
        print_account(account, place)
