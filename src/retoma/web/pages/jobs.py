"""The page of all jobs: looked for, ticked, steered together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import Depends, Request
from starlette.responses import PlainTextResponse, Response

from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.services.jobs import Search
from retoma.web.cursor import Cursor
from retoma.web.house import AVisit
from retoma.web.many import do_to_ids, do_where
from retoma.web.pages.asked import (
    BatchOf,
    CheckpointOf,
    CodeOf,
    CursorOf,
    KindOf,
    StateOf,
    TextOf,
)
from retoma.web.pages.kit import ALooker, Looker, Pages, Screen, drawn, pager
from retoma.web.pages.live import PAUSE, Concern, Region
from retoma.web.pages.route import COUNT, Form, did, form_of, page_router, serve_screen
from retoma.web.pages.view import View
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import LARGEST, TICKED, Done
from retoma.words import Said, say

routes = page_router()

PAGE: Final = 50  # rows
SEARCH: Final = 2.0  # seconds between two drawings of what has no index: it reads thousands
FILTERS: Final = ("state", "kind", "batch", "code", "checkpoint", "text")
VERBS: Final = ("retry", "cancel", "resume", "skip")
NO_SUCH_JOB: Final = say("No job is like that. Clear the filter to see the others.")
NO_JOBS: Final = say(
    "No jobs yet. Submit one from your code or at `POST /api/jobs`; `retoma up` shows a world at work."
)


@dataclass(frozen=True, slots=True)
class JobsScreen(Screen):
    """A page of jobs as somebody looked for them."""

    search: Search
    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        pause = PAUSE if self.search.by_its_own_way else SEARCH
        return Concern(kind=self.search.kind, batch=self.search.batch, pause=pause)

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor("jobs page", self.search)
        before = stamp.read(self.cursor, int)
        page = await self.pages.house.retoma.search(
            self.search, before=before[0] if before else None, limit=PAGE
        )
        return [
            await self._states(),
            job_rows(self.pages, self.view, page.jobs),
            self._pager(stamp.write(page.next), empty=not page.jobs),
        ]

    async def _states(self) -> Region:
        """How many are in each state: those of the kind and batch that are looked at."""
        counted = await self.pages.house.retoma.insights.counts_by_kind(self.search.batch)
        kinds = [states for kind, states in counted.items() if self.search.kind in (None, kind)]
        counts = {state: sum(each.get(state, 0) for each in kinds) for state in State}
        html = self.pages.render(
            "jobs_states.html", self.view, counts=counts, search=self.search, link=self._link
        )
        return drawn("states", html)

    def _pager(self, following: str | None, *, empty: bool) -> Region:
        filtered = self.search != Search()
        return pager(
            self.pages,
            self.view,
            empty=empty,
            nothing=NO_SUCH_JOB if filtered else NO_JOBS,
            way=(say("Clear"), "/jobs") if filtered else None,
            following=following and address(self.search, cursor=following),
            first=self.cursor and address(self.search),
        )

    def _link(self, state: State | None) -> str:
        return address(replace(self.search, state=state))


def job_rows(pages: Pages, view: View, jobs: Sequence[Job]) -> Region:
    """The body of a table of jobs, whichever page it stands on."""
    rows = {f"job-{job.id}": pages.render("job_row.html", view, job=job) for job in jobs}
    return drawn("rows", pages.render("rows.html", view, rows=rows.values()), rows)


def address(search: Search, cursor: str | None = None) -> str:
    """The page that shows these."""
    asked = {name: getattr(search, name) for name in FILTERS}
    return "/jobs" + query_of({**asked, "cursor": cursor})


def query_of(asked: Mapping[str, object]) -> str:
    kept = {name: str(value) for name, value in asked.items() if value is not None}
    return f"?{urlencode(kept)}" if kept else ""


def search_asked(
    state: StateOf = None,
    kind: KindOf = None,
    batch: BatchOf = None,
    code: CodeOf = None,
    checkpoint: CheckpointOf = None,
    text: TextOf = None,
) -> Search:
    return Search(
        state=state, kind=kind, batch=batch, code=code, checkpoint=checkpoint, text=text
    )


def jobs_screen(
    who: ALooker, search: Annotated[Search, Depends(search_asked)], cursor: CursorOf = None
) -> JobsScreen:
    return JobsScreen(who.pages, who.view, search, cursor)


AScreen = Annotated[JobsScreen, Depends(jobs_screen)]


@routes.get("/jobs")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    kinds = sorted(
        {each.name for each in who.house.retoma.kinds}
        | set(await who.house.retoma.insights.counts_by_kind())
    )
    return await who.page(screen, "jobs.html", search=screen.search, kinds=kinds, states=State)


serve_screen(routes, "/jobs", jobs_screen)


@routes.post("/jobs/orders")
async def order(_: Operator, who: ALooker, visit: AVisit, request: Request) -> Response:
    """Something to all that are ticked, or to all that the page's filter finds."""
    form = await form_of(request)
    verb = form.one("verb")
    if verb not in VERBS:
        raise Refusal(
            "bad_input", say("nobody knows what to do with them; nothing was changed")
        )
    why = form.one("why") if verb == "skip" else None
    actor = who.person.name if who.person else ""
    command = await who.house.retoma.bulk.prepare(verb, why=why, actor=actor)
    counting = COUNT in request.headers
    if form.one("all") is None:
        done = await do_to_ids(who.house, command, ticked(form), dry_run=counting)
        back = form.one("next") or "/jobs"
    else:
        done = await do_where(
            who.house, command, search_in(form), None, visit, Response(), dry_run=counting
        )
        back = "/jobs"
    return counted(who, done) if counting else did(who, who.view.tell(outcome(done)), back)


def ticked(form: Form) -> list[int]:
    """Which rows; as many as one page could have shown many times over, and no more."""
    named = form.all("job")
    if not named:
        raise Refusal("bad_input", say("no job is ticked; nothing was changed"))
    if len(named) > TICKED:
        raise Refusal(
            "bad_input",
            say(
                "at most {most} jobs can be ticked, and {n} are: use all that match; nothing"
                " was changed",
                most=TICKED,
                n=len(named),
            ),
        )
    if not all(
        each.isascii() and each.isdigit() and 0 < int(each) <= LARGEST for each in named
    ):
        raise Refusal("bad_input", say("that is no job; nothing was changed"))
    return [int(each) for each in named]


def search_in(form: Form) -> Search:
    """The filter of the page a form was sent from."""
    state, batch = form.one("state"), form.one("batch")
    try:
        return Search(
            state=State(state) if state else None,
            kind=form.one("kind"),
            batch=int(batch) if batch else None,
            code=form.one("code"),
            checkpoint=form.one("checkpoint"),
            text=form.one("text"),
        )
    except ValueError:
        raise Refusal(
            "bad_input", say("that is no filter of this page; nothing was changed")
        ) from None


def counted(who: Looker, done: Done) -> Response:
    """How many it would be."""
    said = say("{n} match.", n=done.matching)
    if not done.exact:
        said = say("At least {n} match.", n=done.matching)
    return PlainTextResponse(who.view.tell(said), headers={"Cache-Control": "no-store"})


def outcome(done: Done) -> Said:
    """What became of an order, in a sentence."""
    if done.job is not None:
        return say("{n} or more: job {job} does it", n=done.matching, job=done.job)
    if done.moved == done.matching:
        return say("{moved} moved", moved=done.moved)
    return say(
        "{moved} of {n} moved; the others do not stand so",
        moved=done.moved,
        n=done.matching,
    )
