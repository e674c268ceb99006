"""SerpAPI's Google Shopping: results by pages, and its ways of saying no."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from retoma.apps.quotes.sandbox.catalogue import Catalogue
from retoma.apps.quotes.sandbox.goods import read_code
from retoma.apps.quotes.sandbox.messages import fingerprint
from retoma.apps.quotes.sandbox.money import reais
from retoma.apps.quotes.sandbox.offers import STORES, Offer
from retoma.sandbox.box import SiteRequest
from retoma.sandbox.faults import Fault

KEY: Final = "serpapi-sandbox"
HERE: Final = "/serpapi"  # on the host that was asked, as the shops are
SHOPS: Final = "/shops"
A_PAGE: Final = 40  # results
NOTHING: Final = "Google hasn't returned any results for this query."
ERRORS: Final[Mapping[int, str]] = {
    400: "Bad request.",
    401: "Invalid API key. Your API key should be here: https://serpapi.com/manage-api-key",
    403: "Your account may not do that.",
    404: "Not found.",
    429: "Your account has run out of searches.",
    503: "Service is unavailable. Try again later.",
}
THROUGHPUT: Final = "You are exceeding the hourly throughput limit of your plan."


def build_search(catalogue: Catalogue) -> Starlette:
    async def search(request: Request) -> Response:
        asked = request.query_params
        if asked.get("api_key") != KEY:
            return _error(401)
        problem = _problem(asked)
        if problem:
            return _error(400, problem)
        origin = f"{request.url.scheme}://{request.headers['host']}"
        return JSONResponse(_answer(catalogue, asked, origin))

    async def account(request: Request) -> Response:
        if request.query_params.get("api_key") != KEY:
            return _error(401)
        return JSONResponse(
            {"account_email": "sandbox@example.com", "plan_searches_left": 1_000}
        )

    async def refused(_: Request, no: Exception) -> Response:
        return _error(no.status_code if isinstance(no, HTTPException) else 500)

    return Starlette(
        routes=[
            Route("/search.json", search),
            Route("/search", search),
            Route("/account.json", account),
        ],
        exception_handlers={HTTPException: refused},
    )


def refusal(fault: Fault) -> Response:
    limited = fault.status == 429 and fault.retry_after is not None
    return _error(fault.status, THROUGHPUT if limited else "")


def notes(asked: SiteRequest) -> Mapping[str, Any]:
    """What was looked for; never the key."""
    told = dict(parse_qsl(asked.query))
    told.pop("api_key", None)
    told["start"] = told.get("start", "0")
    marked = read_code(told.get("q", ""))
    return {
        "query": urlencode(sorted(told.items())),
        "input": fingerprint(f"{told.get('q', '').casefold()}\n{told['start']}"),
        "item": None if marked is None else marked[1],
        "caller": asked.headers.get("user-agent"),
    }


def _problem(asked: QueryParams) -> str:
    engine, start = asked.get("engine", "google"), asked.get("start", "0")
    if engine != "google_shopping":
        return f"Unsupported `{engine}` search engine."
    if not asked.get("q", "").strip():
        return "Missing query `q` parameter."
    return "" if start.isdecimal() else "Unsupported value for `start`."


def _answer(catalogue: Catalogue, asked: QueryParams, origin: str) -> dict[str, Any]:
    query, start = asked["q"], int(asked.get("start", "0"))
    found = catalogue.find(query)
    shown = found[start : start + A_PAGE]
    id_ = fingerprint(f"{catalogue.seed}:{query}:{start}")
    answer: dict[str, Any] = {
        "search_metadata": {
            "id": id_,
            "status": "Success",
            "json_endpoint": f"{origin}/searches/{id_}.json",
            "total_time_taken": 1.0,
        },
        "search_parameters": {key: value for key, value in asked.items() if key != "api_key"},
        "search_information": {
            "query_displayed": query,
            "shopping_results_state": "Results for exact spelling" if shown else "Fully empty",
        },
    }
    if not shown:
        return {**answer, "error": NOTHING}
    results = [_result(offer, f"{origin}{SHOPS}") for offer in shown]
    return {**answer, "shopping_results": results, **_paging(asked, origin, start, len(found))}


def _result(offer: Offer, shops: str) -> dict[str, Any]:
    number = int(fingerprint(offer.id), 16)
    used = {"second_hand_condition": "usado"} if offer.title.startswith("usado") else {}
    return {
        "position": offer.place,
        "title": offer.title,
        "link": f"{shops}{offer.path}",
        "product_link": f"https://www.google.com/shopping/product/{number}?gl=br",
        "product_id": str(number),
        "source": STORES[offer.store],
        "price": reais(offer.listed),
        "extracted_price": float(offer.listed),
        **used,
        "rating": 4.0 + number % 10 / 10,
        "reviews": number % 900,
        "thumbnail": f"{shops}/{offer.store}/thumbnail.png",
        "delivery": "Frete grátis",
    }


def _paging(asked: QueryParams, origin: str, start: int, total: int) -> dict[str, Any]:
    current = {"current": start // A_PAGE + 1}
    if start + A_PAGE >= total:
        return {"serpapi_pagination": current}
    told = {key: value for key, value in asked.items() if key != "api_key"}
    query = urlencode({**told, "start": start + A_PAGE})
    on = f"{origin}{HERE}/search.json?{query}"
    return {"serpapi_pagination": {**current, "next_link": on, "next": on}}


def _error(status: int, message: str = "") -> Response:
    usual = ERRORS.get(status, f"Something went wrong ({status}).")
    return JSONResponse({"error": message or usual}, status)
