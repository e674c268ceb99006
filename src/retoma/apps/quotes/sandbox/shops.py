"""Forty shops: pages that say their price in four ways, and pages that do not want to be read."""

import html
import json
import re
import zlib
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from retoma.apps.quotes.sandbox.catalogue import Catalogue
from retoma.apps.quotes.sandbox.goods import Odd, product
from retoma.apps.quotes.sandbox.money import reais, to_cents
from retoma.apps.quotes.sandbox.offers import DOLLAR, STORES, WELL, Offer, Page
from retoma.engine.ports import Clock
from retoma.sandbox.box import SiteRequest
from retoma.sandbox.faults import Fault

# Where a shop that tells its price to people only has it; each shop one of these.
SELECTORS: Final = (".preco-por", ".product-price", "#price")
ID: Final = re.compile(r"(\d{1,12})(-|[A-Z]{2})(\d{1,3})")
DEEP: Final = 100_000  # elements, each in the other
HUGE: Final = 64  # MiB, when unpacked
LOOPBACK: Final = "http://127.0.0.1:1/admin"
METADATA: Final = "http://169.254.169.254/latest/meta-data/"
PRIVATE: Final = "http://10.0.0.1/admin"
LONG: Final = 500_000  # lines of a page without an end


def build_shops(catalogue: Catalogue, clock: Clock, late: float) -> Starlette:
    """`late`: seconds a slow page takes."""

    async def page(request: Request) -> Response:
        offer = _offer(catalogue, **request.path_params)
        if offer is None:
            return _gone()
        if offer.page is Page.SLOW:
            await clock.sleep(late)
        return _drawn(offer)

    return Starlette(routes=[Route("/{store}/p/{id}", page)])


def refusal(fault: Fault) -> Response:
    return _blocked() if fault.status == 403 else HTMLResponse(_page("Erro", ""), fault.status)


def notes(asked: SiteRequest) -> Mapping[str, Any]:
    return {
        "input": asked.path,
        "store": asked.path.split("/")[1],
        "caller": asked.headers.get("user-agent"),
    }


def _offer(catalogue: Catalogue, store: str, id: str) -> Offer | None:  # noqa: A002 — as in its path
    found = ID.fullmatch(id)
    if found is None or found[2] not in {"-", *Odd}:
        return None
    odd = None if found[2] == "-" else Odd(found[2])
    offers = catalogue.offers(product(catalogue.seed, int(found[1]), odd))
    same = (each for each in offers if (each.store, each.place) == (store, int(found[3])))
    return next(same, None)


def _drawn(offer: Offer) -> Response:
    match offer.page:
        case Page.BLOCKED:
            return _blocked()
        case Page.GONE:
            return _gone()
        case Page.CAPTCHA:
            riddle = '<form id="captcha"><div class="g-recaptcha"></div>Você é humano?</form>'
            return HTMLResponse(_page("Verificação de segurança", riddle))
        case Page.TO_LOOPBACK:
            return RedirectResponse(LOOPBACK, 302)
        case Page.TO_METADATA:
            return RedirectResponse(METADATA, 302)
        case Page.TO_PRIVATE:
            return RedirectResponse(PRIVATE, 302)
        case Page.ENDLESS:
            return HTMLResponse(_page(offer.title, _body(offer) + "<p>mais</p>" * LONG))
        case Page.NESTED:
            return HTMLResponse(_page(offer.title, "<div>" * DEEP))
        case Page.SWOLLEN:
            return Response(
                _swollen(), headers={"Content-Encoding": "gzip"}, media_type="text/html"
            )
        case _:
            return HTMLResponse(_page(offer.title, _body(offer), _head(offer)))


# — prices —


def _said(offer: Offer) -> tuple[Decimal, str] | None:
    """Price and currency as the page has them; None: it has none."""
    if offer.page is Page.DOLLARS:
        return to_cents(offer.listed / DOLLAR), "USD"
    return None if offer.price is None else (offer.price, "BRL")


def _way(offer: Offer) -> Page:
    """How this shop writes its prices."""
    return WELL[_number(offer) % len(WELL)]


def _number(offer: Offer) -> int:
    return list(STORES).index(offer.store)


def _head(offer: Offer) -> str:
    said = _said(offer)
    if said is None:
        return ""
    price, currency = said
    match _way(offer):
        case Page.JSON_LD:
            told = json.dumps(_linked(offer, price, currency)).replace("<", "\\u003c")
            return f'<script type="application/ld+json">{told}</script>'
        case Page.OPEN_GRAPH:
            return (
                '<meta property="og:type" content="product">'
                f'<meta property="product:price:amount" content="{price}">'
                f'<meta property="product:price:currency" content="{currency}">'
            )
        case _:
            return ""


def _linked(offer: Offer, price: Decimal, currency: str) -> Any:
    """One offer, a list of them, or all in a graph: shops do each."""
    one = {"@type": "Offer", "price": str(price), "priceCurrency": currency}
    many = {"@type": "AggregateOffer", "lowPrice": float(price), "priceCurrency": currency}
    ware = {"@context": "https://schema.org", "@type": "Product", "name": offer.title}
    match offer.place % 3:
        case 0:
            return {**ware, "offers": one}
        case 1:
            return [{**ware, "offers": [one]}]
        case _:
            return {"@context": "https://schema.org", "@graph": [{**ware, "offers": many}]}


def _body(offer: Offer) -> str:
    said = _said(offer)
    if said is None:
        on_request = '<p class="preco-por">Sob consulta</p>'
        return on_request if offer.page is Page.ON_REQUEST else "<p>Produto indisponível</p>"
    price, currency = said
    match _way(offer):
        case Page.MICRODATA:
            return (
                '<div itemscope itemtype="https://schema.org/Product"><div itemprop="offers"'
                ' itemscope itemtype="https://schema.org/Offer">'
                f'<meta itemprop="priceCurrency" content="{currency}">'
                f'<span itemprop="price" content="{price}">{_people(price, currency)}</span>'
                "</div></div>"
            )
        case Page.MARKUP:
            return _markup(_number(offer), price, currency)
        case _:
            return f"<p>À vista: {_people(price, currency)}</p>"


def _markup(store: int, price: Decimal, currency: str) -> str:
    """With what stood there before and what a part of it is: neither is the price."""
    mark = ('class="preco-por"', 'class="product-price"', 'id="price"')
    return (
        f"<s class=old>{_people(to_cents(price * 2), currency)}</s>"
        f"<strong {mark[store % len(mark)]}>{_people(price, currency)}</strong>"
        f"<small>ou 10x de {_people(to_cents(price / 10), currency)} sem juros</small>"
    )


def _people(price: Decimal, currency: str) -> str:
    return reais(price) if currency == "BRL" else f"US$ {price:,.2f}"


# — pages —


def _blocked() -> Response:
    return HTMLResponse(_page("Access Denied", "<p>Reference #18.2d3"), 403)


def _gone() -> Response:
    return HTMLResponse(_page("Não encontramos esta página", ""), 404)


def _page(title: str, body: str, head: str = "") -> str:
    safe = html.escape(title, quote=True)
    return (
        f'<!doctype html><html lang="pt-BR"><head><meta charset="utf-8"><title>{safe}</title>'
        f"{head}</head><body><h1>{safe}</h1>{body}</body></html>"
    )


@lru_cache(maxsize=1)
def _swollen() -> bytes:
    squeeze = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    blank = b" " * 1024 * 1024
    return b"".join(squeeze.compress(blank) for _ in range(HUGE)) + squeeze.flush()
