"""People at the door of an application, at its API or its pages: one client for each role."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from typing import Any, Generic, Protocol, TypeVar

import httpx2
from fastapi import FastAPI

from retoma import Retoma
from retoma.access import Access, Role
from retoma.manifest import Application
from retoma.web import build_site
from retoma.web.pages.view import View
from retoma.words import Language
from tests.web.aids import PATIENT, ROOT_KEY, client, set_up
from tests.web.test_pages import HTML
from tests.words.spoken import foreign

PT = {**HTML, "Accept-Language": "pt-BR"}
EN = {**HTML, "Accept-Language": "en"}


class Inhabited(Protocol):
    """Whatever an application's tests call their house."""

    @property
    def app(self) -> Retoma: ...


House = TypeVar("House", bound=Inhabited)


# How Python writes a dict, an enum or an object: no text of a page.
PYTHON = re.compile(r"\{'\w+': |<\w+\.\w+: '|<[\w.]+ object at 0x")


@asynccontextmanager
async def people(
    app: Retoma, application: Application, url: str
) -> AsyncIterator[dict[str, httpx2.AsyncClient]]:
    site = build_site(app, set_up(url), [application], bound=PATIENT)
    async with _clients(app, site) as clients:
        yield clients


@dataclass(frozen=True, slots=True)
class Site(Generic[House]):
    """A house with its pages, and a client for each role."""

    house: House
    site: FastAPI
    admin: httpx2.AsyncClient
    operator: httpx2.AsyncClient
    viewer: httpx2.AsyncClient

    @property
    def app(self) -> Retoma:
        return self.house.app

    def view(self, role: Role = Role.OPERATOR, language: Language = Language.PT_BR) -> View:
        return View(language=language, role=role, timezone=self.app.timezone)

    async def seen(self, path: str, who: httpx2.AsyncClient | None = None) -> str:
        """The page in Portuguese; in English it says no Portuguese, and no English here."""
        for headers, language in ((EN, Language.EN), (PT, Language.PT_BR)):
            answer = await (who or self.operator).get(path, headers=headers)
            assert answer.status_code == 200, (path, answer.text)
            if "Content-Language" in answer.headers:  # else it is what a site has sent
                assert [] == foreign(answer.text, language), (path, language)
        text = unescape(answer.text)
        shown = PYTHON.search(text)
        assert shown is None, (path, text[max(shown.start() - 200, 0) :][:400])
        return text


@asynccontextmanager
async def pages(
    house: House, application: Application, url: str, **settings: Any
) -> AsyncIterator[Site[House]]:
    site = build_site(house.app, set_up(url, **settings), [application], bound=PATIENT)
    async with _clients(house.app, site) as clients:
        yield Site(house, site, **clients)


@asynccontextmanager
async def _clients(app: Retoma, site: FastAPI) -> AsyncIterator[dict[str, httpx2.AsyncClient]]:
    access = Access(await app.database(), app.clock, app.ids)
    keys = {"admin": ROOT_KEY}
    for name, role in (("Olga", Role.OPERATOR), ("Vera", Role.VIEWER)):
        keys[str(role)] = (await access.create_key(name, role, actor="test")).token
    clients = {role: client(site, key) for role, key in keys.items()}
    try:
        yield clients
    finally:
        for each in clients.values():
            await each.aclose()
