"""The page of the audit log: who did what, to what, when; looked for, and saved as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from fastapi import Depends, Query
from markupsafe import Markup
from pydantic import Field
from starlette.responses import Response

from retoma.access import Role
from retoma.services.audit import AuditLine, AuditSearch
from retoma.web.asked import audit_spot
from retoma.web.cursor import Cursor
from retoma.web.pages.asked import Blank, CursorOf, Name, TextOf, Words
from retoma.web.pages.job import text_of
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn, pager
from retoma.web.pages.live import Region
from retoma.web.pages.route import page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Viewer
from retoma.words import say

routes = page_router()

PAGE: Final = 50  # lines
NO_SUCH_DEED: Final = say("Nobody did such a thing. Clear the filter to see what was done.")
NO_DEEDS: Final = say(
    "Nobody has done anything yet. Whatever people do appears here by itself."
)

ActorOf = Annotated[Words | None, Blank, Query()]
VerbOf = Annotated[Name | None, Blank, Query()]
Subject = Annotated[str, Field(max_length=500)]
SubjectOf = Annotated[Subject | None, Blank, Query()]
Moment = Annotated[str, Field(max_length=40)]
MomentOf = Annotated[Moment | None, Blank, Query()]


@dataclass(frozen=True, slots=True)
class AuditScreen(Screen):
    """Lines as somebody looked for them."""

    search: AuditSearch
    cursor: str | None = None

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor("audit page", self.search)
        page = await self.pages.house.retoma.audit(
            self.search, after=audit_spot(stamp, self.cursor), limit=PAGE
        )
        rows = {_id(each): self._row(each) for each in page.lines}
        following = None
        if page.next is not None:
            at, *rest = page.next
            following = stamp.write(at.isoformat(), *rest)
        filtered = self.search != AuditSearch(access=self.search.access)
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_SUCH_DEED if filtered else NO_DEEDS,
            way=(say("Clear"), "/audit") if filtered else None,
            following=following and self._link(following),
            first=self.cursor and self._link(),
        )
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        return [drawn("rows", table, rows), turns]

    def _row(self, line: AuditLine) -> Markup:
        details = None if line.details in (None, {}) else text_of(line.details)
        return self.pages.render(
            "audit_row.html", self.view, id=_id(line), line=line, details=details
        )

    def _link(self, cursor: str | None = None) -> str:
        return "/audit" + query_of({**asked(self.search), "cursor": cursor})


def _id(line: AuditLine) -> str:
    return f"line-{line.spot.source}-{line.spot.x}-{line.spot.y}"


def asked(search: AuditSearch) -> dict[str, Any]:
    """As an address says it, of this page and of the table."""
    instants = {
        name: at and at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        for name, at in (("since", search.since), ("until", search.until))
    }
    names = ("actor", "verb", "subject", "text")
    return {**{name: getattr(search, name) for name in names}, **instants}


def instant(given: str | None, timezone: str) -> datetime | None:
    """What a form says is the house's time; what a link says names its own."""
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
        zoned = at if at.tzinfo else at.replace(tzinfo=ZoneInfo(timezone))
        return zoned.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Refusal(
            "bad_input", say("{given!r} is no instant; look without it", given=given)
        ) from None


def audit_screen(
    who: ALooker,
    actor: ActorOf = None,
    verb: VerbOf = None,
    subject: SubjectOf = None,
    text: TextOf = None,
    since: MomentOf = None,
    until: MomentOf = None,
    cursor: CursorOf = None,
) -> AuditScreen:
    zone = who.view.timezone
    search = AuditSearch(
        actor=actor,
        verb=verb,
        subject=subject,
        text=text,
        since=instant(since, zone),
        until=instant(until, zone),
        access=who.view.role.allows(Role.ADMIN),
    )
    return AuditScreen(who.pages, who.view, search, cursor)


AScreen = Annotated[AuditScreen, Depends(audit_screen)]


@routes.get("/audit")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    table = "/api/events.csv" + query_of(asked(screen.search))
    return await who.page(screen, "audit.html", search=screen.search, table=table)


serve_screen(routes, "/audit", audit_screen)
