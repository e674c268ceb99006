"""The doors of the web: every body, header and query of the site and of both services."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from retoma.access import Access, Role
from retoma.bootstrap import APPLICATIONS, install_applications
from retoma.engine.ports import Clock
from retoma.web import build_site
from retoma.web.bounds import HEAD, Bounds, Places
from retoma.web.pages.route import PageRoute
from retoma.web.route import Route
from tests.cost.family import KIBIBYTE, MEBIBYTE, Cost, Family
from tests.cost.inputs import FORM, JSON, random_base64
from tests.web.aids import PATIENT, ROOT_KEY, application, set_up, stories

PIECE: Final = 64 * KIBIBYTE
UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
AS_JSON: Final = "application/json"
AS_FORM: Final = "application/x-www-form-urlencoded"

CHECKED: Final = Cost(cpu=1.5, memory=110)
TABLES: Final = Cost(cpu=6.0, memory=300)  # every line is made before the limit is looked at
LOOKED_FOR_A_TOKEN: Final = Cost(cpu=0.2, memory=8)
REFUSED_UNREAD: Final = Cost(cpu=0.1, memory=0.5)
GIVEN_AWAY: Final = 0.005  # seconds of CPU for an answer to nobody in particular …
FREE_PIECE: Final = 64 * KIBIBYTE  # … which is sent in pieces of so many bytes
OF_HEAD: Final = Cost(cpu=10.0, memory=100)  # 16 KiB at most


@dataclass(frozen=True, slots=True)
class Site:
    """What requests are sent to."""

    app: FastAPI
    browser: Mapping[str, str]  # headers of a browser in which an operator is signed in

    async def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        query: str = "",
    ) -> int:
        """The status of the answer, whose bytes are thrown away."""
        pieces = iter([body[at : at + PIECE] for at in range(0, len(body), PIECE)] or [b""])
        left = len(body)
        status = 0

        async def receive() -> dict[str, Any]:
            nonlocal left
            piece = next(pieces, b"")
            left -= len(piece)
            return {"type": "http.request", "body": piece, "more_body": left > 0}

        async def send(message: dict[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)

        given = {"host": "127.0.0.1", "content-length": str(len(body)), **headers}
        scope = _scope(method, path, given, query)
        await self.app(scope, receive, send)  # type: ignore[arg-type]
        assert status
        return status

    async def largest_piece(self, path: str) -> int:
        """Bytes of it that are in memory for one client that does not read."""
        largest = 0

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            nonlocal largest
            largest = max(largest, len(message.get("body", b"")))

        await self.app(_scope("GET", path, {"host": "127.0.0.1"}, ""), receive, send)  # type: ignore[arg-type]
        return largest


def _scope(method: str, path: str, headers: Mapping[str, str], query: str) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": query.encode(),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()],
    }


@asynccontextmanager
async def opened() -> AsyncIterator[Site]:
    """The site with every application, on a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'work.db'}"
        async with stories(url, clock=Clock()) as app:
            access = Access(await app.database(), app.clock, app.ids)
            cookie = await access.enter(
                await access.invite("Olga", Role.OPERATOR, "cli"), "a browser"
            )
            browser = {"cookie": f"retoma={cookie}", "origin": "http://127.0.0.1"}
            yield Site(site_of(app, url), browser)


def site_of(app: Any, url: str) -> FastAPI:
    chosen = set_up(url, applications=",".join(APPLICATIONS))
    others = install_applications(app, chosen)
    return build_site(app, chosen, [application(app), *others], bound=PATIENT)


# — which doors there are —


@dataclass(frozen=True, slots=True)
class Door:
    """Where a body of some sort may be sent."""

    method: str
    path: str
    takes: str  # "a file", "much JSON", "JSON", "a form", "nothing"


def places_of(site: FastAPI) -> Places:
    """Which paths are not like the others, as the outermost application knows them."""
    bounds = site.build_middleware_stack()
    assert isinstance(bounds, Bounds)
    return bounds.places


def doors_of(site: FastAPI, uploads: set[str], large: set[str]) -> Iterator[Door]:
    for each in iter_route_contexts(site.routes):
        route = each.original_route
        assert isinstance(route, Route)
        for method in UNSAFE & set(route.methods or ()):
            yield Door(method, route.path_format, _taken(route, uploads, large))


def given_away(site: FastAPI) -> Iterator[str]:
    """What anybody may ask for, with one name of each sort in the address."""
    for each in iter_route_contexts(site.routes):
        route = each.original_route
        assert isinstance(route, Route)
        if "GET" in (route.methods or ()) and None in route.declared:
            yield FREE_PATHS.get(route.path_format, route.path_format)


def _taken(route: Route, uploads: set[str], large: set[str]) -> str:
    if route.path_format in uploads:
        return "a file"
    if route.path_format in large:
        return "much JSON"
    if route.body_field is not None:
        return "JSON"
    return "a form" if isinstance(route, PageRoute) else "nothing"


# — what is sent there —


def _sent(
    method: str, path: str, media: str, *, key: str | None = ROOT_KEY
) -> Callable[[Any, Any], Any]:
    headers = {"content-type": media} | ({} if key is None else {"x-api-key": key})

    async def read(site: Site, body: bytes) -> int:
        return await site.ask(method, path, headers, body)

    return read


def _by_browser(path: str, limit: int) -> Iterator[Family]:
    """Forms whose token is looked for, and is not there."""
    for name, make in FORM.items():

        async def read(site: Site, body: bytes) -> int:
            return await site.ask("POST", path, {"content-type": AS_FORM, **site.browser}, body)

        yield Family(
            door=f"POST {path} by a browser",
            name=name,
            make=make,
            read=read,
            cost=LOOKED_FOR_A_TOKEN,
            limit=limit,
        )


def _of(
    method: str,
    path: str,
    media: str,
    inputs: Mapping[str, Callable[[int], bytes]],
    cost: Cost,
    *,
    limit: int = MEBIBYTE,
    key: str | None = ROOT_KEY,
    who: str = "",
    in_gate: bool = True,
    asked: str = "",
) -> Iterator[Family]:
    """`asked`: the query, without which the address refuses every body."""
    for name, make in inputs.items():
        yield Family(
            door=f"{method} {path}{who}",
            name=name,
            make=make,
            read=_sent(method, path + asked, media, key=key),
            cost=cost,
            limit=limit,
            in_gate=in_gate,
        )


PAYLOAD: Final = {
    name: lambda n, make=make: b'{"kind": "work", "payload": %s}' % make(n)
    for name, make in JSON.items()
}
LOTE: Final = {
    "quotes that are none": lambda n: b'{"quotes": [%s]}' % b",".join([b"1"] * (n // 2)),
    "quotes with an unknown field": lambda n: (
        b'{"quotes": [%s]}' % b",".join([b'{"a":1}'] * (n // 8))
    ),
}
TABLE: Final = {
    "lines": lambda n: b"descricao\n" + b"a\n" * (n // 2),
    "one line": lambda n: b"descricao\n" + b"a" * n,
    "separators": lambda n: b"descricao" + b"," * n,
}
# By the path that takes them; a path that is in no manifest has none.
# What a PDF, a DOCX or a page costs its child is measured at the readers.
WORDS: Final[Mapping[str, Callable[[int], bytes]]] = {
    "words": lambda n: b"palavra " * (n // 8),
    "no text": lambda n: b"\xff" * n,
}
FILES: Final[Mapping[str, tuple[str, Mapping[str, Callable[[int], bytes]], Cost]]] = {
    "/quotes/import": (AS_FORM, FORM, CHECKED),
    "/api/lotes/import": ("text/csv", TABLE, TABLES),
    "/classificador/arquivos": (
        "multipart/form-data; boundary=b",
        {"lines": lambda n: b"\r\n" * (n // 2), "boundaries": lambda n: b"--b\r\n" * (n // 5)},
        CHECKED,
    ),
    "/api/embeddings/files": ("application/octet-stream", WORDS, CHECKED),
    "/embeddings/nova/arquivo": ("application/octet-stream", WORDS, CHECKED),
}
ASKED: Final[Mapping[str, str]] = {
    "/api/embeddings/files": "?collection=c&name=a.txt",
    "/embeddings/nova/arquivo": "?colecao=c&nome=a.txt",
}
FILE_SIZES: Final[Mapping[str, int]] = {
    "/quotes/import": 20 * MEBIBYTE,
    "/api/lotes/import": 20 * MEBIBYTE,
    "/classificador/arquivos": 2048 * MEBIBYTE,
    "/api/embeddings/files": 50 * MEBIBYTE,
    "/embeddings/nova/arquivo": 50 * MEBIBYTE,
}
MUCH_JSON: Final[Mapping[str, int]] = {
    "/api/lotes": 16 * MEBIBYTE,
    "/api/embeddings/documents": 16 * MEBIBYTE,
    "/embeddings/nova": 16 * MEBIBYTE,
    "/classificador/pastas": 64 * KIBIBYTE,
    "/classificador/execucoes": 16 * MEBIBYTE,
    "/classificador/nova": 16 * MEBIBYTE,
}
# Of the head everybody may send; each by the header that is read.
HEADERS: Final[Mapping[str, Mapping[str, Callable[[int], str]]]] = {
    "authorization": {"spaces": lambda n: "Bearer" + " " * n, "base64": random_base64},
    "x-api-key": {"base64": random_base64},
    "cookie": {
        "backslashes": lambda n: 'retoma="' + "\\" * n + '"',
        "cookies": lambda n: "a=b; " * (n // 5),
        "spaces": lambda n: "retoma_language" + " " * n + "; " * 100,
    },
    "x-correlation-id": {"base64": random_base64, "escapes": lambda n: "%41" * (n // 3)},
    "traceparent": {"digits": lambda n: "0" * n},
    "accept-language": {"tags": lambda n: "pt;q=0.5," * (n // 9)},
    "content-type": {
        "parameters": lambda n: "application/json" + ";" * n,
        "quotes": lambda n: 'application/json; a="' + ";" * n,
    },
    "idempotency-key": {"digits": lambda n: "0" * n},
    "last-event-id": {"digits": lambda n: "0" * n},
    "origin": {"dots": lambda n: "http://" + "." * n},
    "host": {"dots": lambda n: "." * n},
    "user-agent": {"base64": random_base64},
    "accept": {"commas": lambda n: "text/html" + "," * n},
    "accept-encoding": {"commas": lambda n: "gzip," * (n // 5)},
    "content-length": {"digits": lambda n: "9" * n},
    "x-csrf-token": {"digits": lambda n: "0" * n},
    "sec-fetch-site": {"digits": lambda n: "0" * n},
}
# An address of a route that has names in it.
FREE_PATHS: Final[Mapping[str, str]] = {
    "/static/{name}": "/static/retoma.css",
    "/enter/{link}": "/enter/abc",
    "/{job_id}/{name}": "/abc/abc_results.json",
}
QUERY: Final[Mapping[str, Callable[[int], str]]] = {
    "parameters": lambda n: "a=1&" * (n // 4),
    "escapes": lambda n: "text=" + "%41" * (n // 3),
    "a cursor": lambda n: "cursor=" + random_base64(n).replace("+", "a"),
}


def _heads() -> Iterator[Family]:
    for header, inputs in HEADERS.items():
        for name, make in inputs.items():

            async def read(site: Site, value: str, header: str = header) -> int:
                headers = {"x-api-key": ROOT_KEY, "content-type": AS_JSON, header: value}
                return await site.ask("POST", "/api/jobs", headers, b"{}")

            yield Family(
                door=f"header {header}",
                name=name,
                make=make,
                read=read,
                cost=OF_HEAD,
                smallest=2 * KIBIBYTE,
                largest=HEAD,
                limit=HEAD,
            )
    for name, make in QUERY.items():

        async def asked(site: Site, query: str) -> int:
            return await site.ask("GET", "/api/jobs", {"x-api-key": ROOT_KEY}, query=query)

        yield Family(
            door="query",
            name=name,
            make=make,
            read=asked,
            cost=OF_HEAD,
            smallest=2 * KIBIBYTE,
            largest=HEAD,
            limit=HEAD,
        )


def _families() -> Iterator[Family]:
    stranger = " by a stranger"
    yield from _of("POST", "/api/jobs", AS_JSON, JSON, REFUSED_UNREAD, key=None, who=stranger)
    yield from _of(
        "POST", "/quotes/import", AS_FORM, FORM, REFUSED_UNREAD, key=None, who=stranger
    )
    yield from _of("POST", "/api/jobs", AS_JSON, PAYLOAD, CHECKED)
    yield from _of("POST", "/jobs/orders", AS_FORM, FORM, CHECKED)
    yield from _by_browser("/jobs/orders", MEBIBYTE)
    yield from _by_browser("/embeddings/nova", MUCH_JSON["/embeddings/nova"])
    yield from _of("POST", "/api/lotes", AS_JSON, LOTE, CHECKED, limit=MUCH_JSON["/api/lotes"])
    for path, limit in MUCH_JSON.items():
        in_gate = path == "/embeddings/nova"
        yield from _of("POST", path, AS_JSON, JSON, CHECKED, limit=limit, in_gate=in_gate)
    for path, (media, inputs, cost) in FILES.items():
        yield from _of(
            "POST",
            path,
            media,
            inputs,
            cost,
            limit=min(FILE_SIZES[path], 16 << 20),
            asked=ASKED.get(path, ""),
        )
    yield from _heads()


FAMILIES: Final = list(_families())
