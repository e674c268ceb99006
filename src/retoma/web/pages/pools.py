"""The page of pools: which things there are, who holds them, how they fare; on and off by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from retoma.library import Retoma
from retoma.services import gates
from retoma.services.gates import ItemSeen
from retoma.web.cursor import Cursor
from retoma.web.pages.asked import Blank, CursorOf, Words
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, called, drawn, pager
from retoma.web.pages.live import Region
from retoma.web.pages.route import Form, did, form_of, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Admin, Viewer
from retoma.web.wire import TICKED
from retoma.words import Said, say

routes = page_router()

PAGE: Final = 100  # things
NO_THINGS: Final = say("Nothing is in this pool. Code declares it: `app.pools.declare`.")

PoolOf = Annotated[Words | None, Blank, Query()]


@dataclass(frozen=True, slots=True)
class PoolsScreen(Screen):
    """All pools, and the things of the one that was chosen."""

    pool: str | None = None
    cursor: str | None = None

    async def draw(self) -> Sequence[Region]:
        pools = await gates.list_pools(self.pages.house.retoma)
        html = self.pages.render(
            "pools_list.html", self.view, pools=pools, chosen=self.pool, link=pool_link
        )
        listed = [drawn("pools", html)]
        return listed if self.pool is None else [*listed, *await self._things(self.pool)]

    async def _things(self, pool: str) -> list[Region]:
        stamp = Cursor("things page", pool)
        [after] = stamp.read(self.cursor, str) or [""]
        left = await gates.list_things(self.pages.house.retoma, pool, after, PAGE + 1)
        rows = {called("thing", each.name): self._row(each) for each in left[:PAGE]}
        following = stamp.write(left[PAGE - 1].name if len(left) > PAGE else None)
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_THINGS,
            following=following and pool_link(pool, following),
            first=self.cursor and pool_link(pool),
            by_age=False,
        )
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        return [drawn("rows", table, rows), turns]

    def _row(self, thing: ItemSeen) -> Markup:
        return self.pages.render(
            "thing_row.html", self.view, id=called("thing", thing.name), thing=thing
        )


def pool_link(pool: str, cursor: str | None = None) -> str:
    return "/pools" + query_of({"pool": pool, "cursor": cursor})


def pools_screen(who: ALooker, pool: PoolOf = None, cursor: CursorOf = None) -> PoolsScreen:
    return PoolsScreen(who.pages, who.view, pool, cursor)


AScreen = Annotated[PoolsScreen, Depends(pools_screen)]


@routes.get("/pools")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    return await who.page(screen, "pools.html", pool=screen.pool)


serve_screen(routes, "/pools", pools_screen)


@routes.post("/pools/orders")
async def order(actor: Admin, who: ALooker, request: Request) -> Response:
    """Switch what is ticked on or off, or say that the use of one thing has ended."""
    form = await form_of(request)
    pool = form.one("pool")
    if pool is None:
        raise Refusal("bad_input", say("no pool is named; nothing was changed"))
    said = await _ordered(who.house.retoma, pool, form, actor.name)
    return did(who, who.view.tell(said), pool_link(pool))


async def _ordered(retoma: Retoma, pool: str, form: Form, actor: str) -> Said:
    match form.one("verb"):
        case "on" | "off" as verb:
            things = _ticked(form)
            why = form.one("why") or ""
            if verb == "on":
                await gates.switch_on(retoma, pool, things, why, actor=actor)
                return say("{n} of {pool} switched on", n=len(things), pool=pool)
            await gates.switch_off(retoma, pool, things, why, actor=actor)
            return say("{n} of {pool} switched off", n=len(things), pool=pool)
        case "free":
            [thing] = _ticked(form)[:1]
            await gates.free_thing(retoma, pool, thing, actor=actor)
            return say("{thing} is free", thing=thing)
        case _:
            raise Refusal(
                "bad_input", say("nobody knows what to do with them; nothing was changed")
            )


def _ticked(form: Form) -> list[str]:
    named = [each for each in form.all("thing") if each]
    if not named or len(named) > TICKED:
        raise Refusal(
            "bad_input",
            say(
                "tick 1 to {most} things, not {n}; nothing was changed",
                most=TICKED,
                n=len(named),
            ),
        )
    return named
