"""The page of dead letters: of what they died, those alike together, and what becomes of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.responses import Response

from retoma.services.bulk import Verb
from retoma.services.jobs import Search
from retoma.web.cursor import Cursor
from retoma.web.house import AVisit
from retoma.web.many import do_to_ids, do_where
from retoma.web.pages.asked import BatchOf, CodeOf, CursorOf, FingerprintOf, KindOf, TextOf
from retoma.web.pages.jobs import SEARCH, counted, outcome, query_of, ticked
from retoma.web.pages.kit import ALooker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import COUNT, Form, did, form_of, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

PAGE: Final = 50  # rows
GROUPS: Final = 20
CANARY: Final = 5  # jobs that go first
NO_SUCH_LETTER: Final = say("No dead letter is like that. Clear the filter to see the others.")
NO_LETTERS: Final = say("No dead letters. What ends badly appears here by itself.")
FILTERS: Final = ("kind", "batch", "code", "fingerprint", "text")


@dataclass(frozen=True, slots=True)
class DeadScreen(Screen):
    """Dead letters as somebody looked for them."""

    search: Search
    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        return Concern(kind=self.search.kind, batch=self.search.batch, pause=SEARCH)

    async def draw(self) -> Sequence[Region]:
        return [await self._groups(), *await self._letters()]

    async def _groups(self) -> Region:
        alike = Search(
            letters=True, kind=self.search.kind, batch=self.search.batch, code=self.search.code
        )
        found = await self.pages.house.retoma.dead.groups(alike)
        html = self.pages.render(
            "dead_groups.html",
            self.view,
            found=found,
            groups=found.groups[:GROUPS],
            search=self.search,
            link=self._link,
            canary=CANARY,
        )
        return drawn("groups", html)

    async def _letters(self) -> list[Region]:
        retoma = self.pages.house.retoma
        stamp = Cursor("dead page", self.search)
        before = stamp.read(self.cursor, int)
        page = await retoma.search(
            self.search, before=before[0] if before else None, limit=PAGE
        )
        causes = await retoma.dead.causes([each.id for each in page.jobs])
        rows = {
            f"job-{job.id}": self.pages.render(
                "dead_row.html",
                self.view,
                job=job,
                message=self.view.tell_stored(causes[job.id].message),
            )
            for job in page.jobs
            if job.id in causes
        }
        following = stamp.write(page.next)
        filtered = self.search != Search(letters=True)
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_SUCH_LETTER if filtered else NO_LETTERS,
            way=(say("Clear"), "/dead") if filtered else None,
            following=following and self._link(self.search.fingerprint, cursor=following),
            first=self.cursor and self._link(self.search.fingerprint),
        )
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        return [drawn("rows", table, rows), turns]

    def _link(self, fingerprint: str | None, cursor: str | None = None) -> str:
        asked = {name: getattr(self.search, name) for name in FILTERS}
        return "/dead" + query_of({**asked, "fingerprint": fingerprint, "cursor": cursor})


def dead_screen(
    who: ALooker,
    kind: KindOf = None,
    batch: BatchOf = None,
    code: CodeOf = None,
    fingerprint: FingerprintOf = None,
    text: TextOf = None,
    cursor: CursorOf = None,
) -> DeadScreen:
    search = Search(
        letters=True, kind=kind, batch=batch, code=code, fingerprint=fingerprint, text=text
    )
    return DeadScreen(who.pages, who.view, search, cursor)


AScreen = Annotated[DeadScreen, Depends(dead_screen)]


@routes.get("/dead")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    kinds = sorted(await who.house.retoma.insights.counts_by_kind())
    return await who.page(screen, "dead.html", search=screen.search, kinds=kinds)


serve_screen(routes, "/dead", dead_screen)


@routes.post("/dead/orders")
async def order(actor: Operator, who: ALooker, visit: AVisit, request: Request) -> Response:
    """Retry or put away: those that are ticked, all that are so, or a canary of them."""
    form = await form_of(request)
    grouped = form.one("group")  # a button has one value: what to do, and to which group
    verb, _, group = (grouped or form.one("verb") or "").partition(" ")
    if verb not in ("retry", "canary", "discard"):
        raise Refusal(
            "bad_input", say("nobody knows what to do with them; nothing was changed")
        )
    command = await who.house.retoma.bulk.prepare(
        Verb.DISCARD if verb == "discard" else Verb.RETRY, actor=actor.name
    )
    most = CANARY if verb == "canary" else None
    counting = COUNT in request.headers
    if form.one("all") is None:
        wanted = sorted(ticked(form), reverse=True)[:most]
        done = await do_to_ids(who.house, command, wanted, dry_run=counting)
    else:
        search = letters_in(form, group or form.one("fingerprint"))
        done = await do_where(
            who.house, command, search, None, visit, Response(), dry_run=counting, most=most
        )
    return counted(who, done) if counting else did(who, who.view.tell(outcome(done)), "/dead")


def letters_in(form: Form, fingerprint: str | None) -> Search:
    """The filter of the page, or the group, a form was sent from."""
    batch = form.one("batch")
    if batch is not None and not (batch.isascii() and batch.isdigit()):
        raise Refusal("bad_input", say("that is no filter of this page; nothing was changed"))
    return Search(
        letters=True,
        kind=form.one("kind"),
        batch=int(batch) if batch else None,
        code=form.one("code"),
        fingerprint=fingerprint,
        text=form.one("text"),
    )
