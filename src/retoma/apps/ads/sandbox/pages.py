"""The same library in two dresses, as two sites of different makers would show it.

`/gallery`: cards, numbered pages, the reader says how many to a page, the total is told.
`/archive`: a table, "mais" leads on by a mark of where the reader was, days as dd/mm/yyyy, no total.
"""

import html
from collections.abc import Callable, Sequence
from datetime import date
from typing import Final
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from retoma.apps.ads.sandbox.library import FIRST, LAST, Ad, Library, Wanted

A_CARD_PAGE: Final = (20, 150)  # cards to a page: as a rule, and at most
A_TABLE_PAGE: Final = 40  # rows
Draw = Callable[[Library, QueryParams], str]


def build_pages(library: Library) -> Starlette:
    async def front(_: Request) -> Response:
        return HTMLResponse(_page("<a href=/gallery>gallery</a> <a href=/archive>archive</a>"))

    async def robots(_: Request) -> Response:
        return PlainTextResponse("User-agent: *\nAllow: /\n")

    return Starlette(
        routes=[
            Route("/", front),
            Route("/robots.txt", robots),
            Route("/gallery", _drawn(_gallery, library)),
            Route("/archive", _drawn(_archive, library)),
        ]
    )


def _drawn(draw: Draw, library: Library) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        try:
            return HTMLResponse(draw(library, request.query_params))
        except ValueError:
            return HTMLResponse(_page("<p>That cannot be looked for."), status_code=400)

    return answer


# — cards —


def _gallery(library: Library, asked: QueryParams) -> str:
    wanted = Wanted(
        start=_day(asked.get("from"), FIRST),
        end=_day(asked.get("to"), LAST),
        media_type=asked.get("media", ""),
        languages=frozenset(filter(None, asked.get("lang", "").split(","))),
        by_count=asked.get("sort") == "qtd_ads",
    )
    found = library.find(wanted)
    page, size = int(asked.get("page", 1)), int(asked.get("per_page", A_CARD_PAGE[0]))
    if page < 1 or not 1 <= size <= A_CARD_PAGE[1]:
        raise ValueError
    shown = found[(page - 1) * size : page * size]
    more = page * size < len(found)
    return _page(
        f'<p class="found" data-total="{len(found)}">{len(found)} ads</p>'
        f'<section class="cards">{"".join(map(_card, shown))}</section>'
        + (_link(asked, page + 1) if more else "")
    )


def _card(ad: Ad) -> str:
    return (
        f'<article class="ad" data-id="{_safe(ad.id)}" data-media="{ad.media_type}">'
        f'<h2 class="title">{_safe(ad.title)}</h2><p class="by">{_safe(ad.advertiser)}</p>'
        f'<p class="text">{_safe(ad.text)}</p><span class="lang" lang="{ad.language}"></span>'
        f'<time datetime="{ad.date}">{ad.date:%b %d}</time>'
        f'<b class="count">{ad.qtd_ads}</b><a class="to" href="{_safe(ad.url)}">open</a>'
        "</article>"
    )


def _link(asked: QueryParams, page: int) -> str:
    query = urlencode({**dict(asked), "page": page})
    return (
        f'<nav><a rel="next" data-page="{page}" href="/gallery?{_safe(query)}">next</a></nav>'
    )


# — rows —


def _archive(library: Library, asked: QueryParams) -> str:
    wanted = Wanted(
        start=_day(asked.get("since"), FIRST),
        end=_day(asked.get("until"), LAST),
        media_type=asked.get("kind", ""),
        languages=frozenset(asked.getlist("language")),
        by_count=asked.get("order") == "qtd_ads",
    )
    found = library.find(wanted)
    begin = _place_after(found, asked.get("after"))
    shown = found[begin : begin + A_TABLE_PAGE]
    more = begin + A_TABLE_PAGE < len(found)
    return _page(
        f'<table id="anuncios"><tbody>{"".join(map(_row, shown))}</tbody></table>'
        + (_button(shown[-1]) if more else "")
    )


def _row(ad: Ad) -> str:
    kind = {"video": "vídeo", "image": "imagem"}[ad.media_type]
    return (
        f'<tr id="{_safe(ad.id)}"><td><a href="{_safe(ad.url)}">{_safe(ad.title)}</a></td>'
        f"<td>{_safe(ad.advertiser)}</td><td>{_safe(ad.text)}</td><td>{ad.language}</td>"
        f"<td>{kind}</td><td>{ad.date:%d/%m/%Y}</td><td>{ad.qtd_ads}</td></tr>"
    )


def _button(last: Ad) -> str:
    return f'<button class="mais" data-after="{_safe(last.id)}">mais</button>'


def _place_after(found: Sequence[Ad], mark: str | None) -> int:
    if mark is None:
        return 0
    places = [place for place, ad in enumerate(found) if ad.id == mark]
    if not places:
        raise ValueError
    return places[0] + 1


# — both —


def _day(text: str | None, usual: date) -> date:
    return usual if not text else date.fromisoformat(text)


def _safe(text: str) -> str:
    return html.escape(text, quote=True)


def _page(body: str) -> str:
    return f'<!doctype html><html lang="pt"><title>Ads</title><body>{body}</body></html>'
