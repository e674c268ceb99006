"""All collections and how far each is; and what every runner does for them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.responses import Response

from retoma.apps.embeddings import store
from retoma.apps.embeddings.model import KIND
from retoma.apps.embeddings.pages.looks import (
    CONCERN,
    PAGE,
    address,
    progress_given,
    read,
)
from retoma.apps.embeddings.store.collections import Collection, Progress
from retoma.apps.embeddings.store.jobs import WorkerMetrics
from retoma.apps.embeddings.store.rows import time_of, verb
from retoma.db import Row, Transaction
from retoma.web.pages.asked import Blank, Name
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Pages, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import page_router, streamed
from retoma.web.pages.runners import STANDS
from retoma.web.pages.view import View
from retoma.web.sign_in import Viewer
from retoma.words import say

routes = page_router()

RUNNER_PACES: Final = verb("runner_paces")
LIST: Final = 25  # collections, each with its counts
NO_COLLECTIONS: Final = say(
    "No collections yet. Hand texts in; in a shell: `retoma embeddings embed FOLDER --collection NAME`."
)
RUNNERS: Final = 20
SHORTEST: Final = 1.0  # seconds of work that a pace is told of

After = Annotated[Name | None, Blank]


@dataclass(frozen=True, slots=True)
class RunnerPace:
    """What a runner has done since it began. `a_minute`: documents; None where it is not at work."""

    name: str
    boot: str
    state: str
    beat_at: datetime | None
    done: int
    retried: int
    failed: int
    recovered: int
    lasts: float | None  # seconds of a document, on average
    a_minute: float | None


def runner_paces(tx: Transaction) -> list[RunnerPace]:
    return [_pace(row) for row in tx.all(RUNNER_PACES, kind=KIND, n=RUNNERS)]


def _pace(row: Row) -> RunnerPace:
    name, boot, state, since, beat, now, late, done, retried, failed, recovered, ms = row
    began, until = time_of(since), time_of(now)
    at_work = None
    if state == "alive" and not late and began is not None and until is not None:
        at_work = max((until - began).total_seconds(), SHORTEST)
    return RunnerPace(
        name=name,
        boot=boot,
        state="silent" if late and state in ("alive", "leaving") else state,
        beat_at=time_of(beat),
        done=int(done),
        retried=int(retried),
        failed=int(failed),
        recovered=int(recovered),
        lasts=float(ms) / 1000 / int(done) if done else None,
        a_minute=None if at_work is None else int(done) * 60 / at_work,
    )


@dataclass(frozen=True, slots=True)
class CollectionsScreen:
    """Collections by their names."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    after: str | None = None

    @property
    def key(self) -> "CollectionsScreen":
        return self

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        found, paces, metrics = await read(self.pages.house, self._look)
        rows = {
            f"collection-{each.id}": self.pages.render(
                "embeddings/collection_row.html",
                self.view,
                collection=each,
                place=address(each.name),
                **progress_given(progress),
            )
            for each, progress in found[:LIST]
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        more = len(found) > LIST
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_COLLECTIONS,
            way=(say("Hand texts in"), f"{PAGE}/nova"),
            following=PAGE + query_of({"depois": found[LIST - 1][0].name}) if more else None,
            first=PAGE if self.after else None,
            by_age=False,
        )
        runners = self.pages.render(
            "embeddings/runners.html",
            self.view,
            runners=paces,
            words=STANDS,
            metrics=metrics.told(),
        )
        return [
            drawn("rows", table, rows),
            turns,
            drawn("embedding-runners", runners),
        ]

    def _look(
        self, tx: Transaction
    ) -> tuple[list[tuple[Collection, Progress]], list[RunnerPace], WorkerMetrics]:
        found = store.collections.list_collections(tx, after=self.after or "", n=LIST + 1)
        counted = [(each, store.collections.progress(tx, each)) for each in found]
        return counted, runner_paces(tx), store.jobs.metrics(tx)


def collections_screen(who: ALooker, depois: After = None) -> CollectionsScreen:
    return CollectionsScreen(who.pages, who.view, depois)


AScreen = Annotated[CollectionsScreen, Depends(collections_screen)]


@routes.get("/embeddings/")
@routes.get("/embeddings")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    return await who.page(screen, "embeddings/collections.html")


@routes.get("/live/embeddings/")
@routes.get("/live/embeddings")
async def live(_: Viewer, who: ALooker, request: Request, screen: AScreen) -> Response:
    return await streamed(request, who, screen)
