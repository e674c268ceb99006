"""The pages of batches: how far each is, what went wrong in it, and how it goes on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.responses import Response

from retoma.engine.ops.batches import FINISHED, Batch, Progress
from retoma.engine.rules.states import BatchState, State
from retoma.services.bulk import Order
from retoma.services.jobs import Search
from retoma.web.cursor import Cursor
from retoma.web.house import AVisit
from retoma.web.many import do_to_batch
from retoma.web.pages.asked import CodeOf, CursorOf, StateOf
from retoma.web.pages.bars import parts_of
from retoma.web.pages.jobs import NO_SUCH_JOB, job_rows, query_of
from retoma.web.pages.kit import ALooker, Looker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, did, form_of, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.web.visit import Visit
from retoma.web.wire import BatchId, Moved
from retoma.words import Said, say

routes = page_router()

PAGE: Final = 50  # rows
LIST: Final = 25  # batches, each with its counts
SILENCE: Final = 60  # seconds without an event after which a page says so
NO_BATCHES: Final = say(
    "No batches yet. Jobs that are submitted together, as with `app.submit_many`, appear here by themselves."
)
# Of a bar, from left to right: what has ended, what is at it, what waits for a person.
PARTS: Final = (
    *(State.DONE, State.SKIPPED, State.CANCELED, State.DEAD),
    *(State.RUNNING, State.PARKED),
)


# — all of them —


@dataclass(frozen=True, slots=True)
class BatchesScreen(Screen):
    """The newest batches, or older ones."""

    cursor: str | None = None

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor("batches page", None)
        before = stamp.read(self.cursor, int)
        found = await self.pages.house.retoma.batches.list(
            before=before[0] if before else None, limit=LIST
        )
        rows = {
            f"batch-{each.id}": self.pages.render(
                "batch_row.html", self.view, batch=each, **told(await each.progress())
            )
            for each in found
        }
        following = stamp.write(found[-1].id if len(found) == LIST else None)
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        turns = pager(
            self.pages,
            self.view,
            empty=not found,
            nothing=NO_BATCHES,
            following=following and "/batches" + query_of({"cursor": following}),
            first=self.cursor and "/batches",
        )
        return [drawn("rows", table, rows), turns]


def batches_screen(who: ALooker, cursor: CursorOf = None) -> BatchesScreen:
    return BatchesScreen(who.pages, who.view, cursor)


serve_screen(routes, "/batches", batches_screen, "batches.html")


# — one —


@dataclass(frozen=True, slots=True)
class BatchScreen(Screen):
    """One batch, and a page of its jobs."""

    batch: int
    search: Search
    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        return Concern(batch=self.batch)

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        batch = await retoma.batches.get(self.batch)
        progress = await batch.progress()
        given: dict[str, Any] = {
            "batch": batch,
            **told(progress),
            "why": await self._why(batch, progress),
            "codes": await retoma.dead.codes(self.batch),
            "costs": await retoma.costs.of_batch(self.batch),
            "search": self.search,
            "link": self._link,
        }
        return [
            drawn(f"batch-{name}", self.pages.render(f"batch_{name}.html", self.view, **given))
            for name in ("head", "codes", "costs")
        ] + await self._items()

    async def _items(self) -> list[Region]:
        stamp = Cursor("batch page", self.search)
        before = stamp.read(self.cursor, int)
        page = await self.pages.house.retoma.search(
            self.search, before=before[0] if before else None, limit=PAGE
        )
        following = stamp.write(page.next)
        turns = pager(
            self.pages,
            self.view,
            empty=not page.jobs,
            nothing=NO_SUCH_JOB,
            way=(say("Clear"), f"/batches/{self.search.batch}"),
            following=following and self._link(self.search.state, cursor=following),
            first=self.cursor and self._link(self.search.state),
        )
        return [job_rows(self.pages, self.view, page.jobs), turns]

    async def _why(self, batch: Batch, progress: Progress) -> str | None:
        """Where nothing of it runs although it should: what holds the next one."""
        if progress.state is not BatchState.RUNNING or progress.counts.get(State.RUNNING):
            return None
        retoma = self.pages.house.retoma
        waiting = Search(batch=batch.id, state=State.WAITING)
        page = await retoma.search(waiting, limit=1)
        return self.view.tell(await retoma.explain(page.jobs[0].id)) if page.jobs else None

    def _link(self, state: State | None, cursor: str | None = None) -> str:
        asked = {"state": state, "code": self.search.code, "cursor": cursor}
        return f"/batches/{self.batch}{query_of(asked)}"


def told(progress: Progress) -> dict[str, Any]:
    """What a template says of how far a batch is."""
    return {
        "progress": progress,
        "counts": progress.counts,
        "bar": _bar(progress),
        "moving": progress.state is BatchState.RUNNING,
        "over": progress.state in FINISHED,
    }


def _bar(progress: Progress) -> list[tuple[State, float, float]]:
    return parts_of(((each, progress.counts.get(each, 0)) for each in PARTS), progress.total)


def batch_screen(
    batch: BatchId,
    who: ALooker,
    state: StateOf = None,
    code: CodeOf = None,
    cursor: CursorOf = None,
) -> BatchScreen:
    search = Search(batch=batch, state=state, code=code)
    return BatchScreen(who.pages, who.view, batch, search, cursor)


AScreen = Annotated[BatchScreen, Depends(batch_screen)]


@routes.get("/batches/{batch}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    batch = await who.house.retoma.batches.get(screen.batch)
    return await who.page(
        screen, "batch.html", batch=batch, search=screen.search, silence=SILENCE
    )


serve_screen(routes, "/batches/{batch}", batch_screen)


@routes.post("/batches/{batch}/{verb}")
async def steer(
    batch: BatchId, verb: str, actor: Operator, who: ALooker, visit: AVisit, request: Request
) -> Response:
    form = await form_of(request)
    found = await who.house.retoma.batches.get(batch)
    said = await _steered(who, found, verb, form, actor.name, visit)
    return did(who, who.view.tell(said), f"/batches/{batch}")


async def _steered(
    who: Looker, batch: Batch, verb: str, form: Form, actor: str, visit: Visit
) -> Said:
    match verb:
        case "pause":
            await batch.pause(actor=actor)
            return say("batch {batch} is paused: what runs ends", batch=batch.id)
        case "unpause":
            await batch.unpause(actor=actor)
            return say("batch {batch} goes on", batch=batch.id)
        case "resume" | "cancel" | "retry":
            codes = form.all("code") or None if verb == "retry" else None
            order = Order(verb=verb, actor=actor, batch=batch.id, codes=codes)
            return _outcome(await do_to_batch(who.house, batch, order, visit, Response()))
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))


def _outcome(moved: Moved) -> Said:
    if moved.job is not None:
        return say("they are many: job {job} does it", job=moved.job)
    return say("{moved} moved", moved=moved.moved)
