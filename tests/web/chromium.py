"""Pages for the tests to look at, in a real browser that playwright drives: one for a whole module."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.house.files import ROOT
from tests.services import MissingService
from tests.services.chromium import chromium_path
from tests.services.node import find_node, install_packages

PATIENCE = 40_000  # milliseconds: of a machine that has other tests to do
AXE = ROOT / "tests" / "axe"
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


@cache
def axe_source() -> str:
    if not install_packages("axe-core", AXE, partial(find_node, lambda _: True)):
        raise MissingService("axe-core is missing: npm could not install it (see above)")
    return (AXE / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def violations(page: Page, *rules: str) -> list[tuple[str, Any]]:
    """What axe finds on this page, by all of its rules or by these. What it finds in order stays there."""
    asked: dict[str, Any] = {"runOnly": rules} if rules else {}
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe_source())
    found = page.evaluate(ASK_AXE, asked | {"resultTypes": ["violations"]})
    return [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]


ASK_AXE = "async (asked) => (await axe.run(document, asked)).violations"


def looks_right(
    page: Page, origin: str, rooms: Iterable[str], *, seen: Collection[str] = ()
) -> None:
    """For whoever cannot see it, and on a phone. `seen`: rooms that axe has looked at before."""
    wide = page.viewport_size
    found, broad = {}, []
    for room in rooms:
        page.goto(f"{origin}{room}")
        if room not in seen:
            found[room] = violations(page)
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            broad.append(room)
        page.set_viewport_size(wide)  # type: ignore[arg-type]
    assert ({}, []) == ({room: each for room, each in found.items() if each}, broad)


def stays(page: Page) -> None:
    """From here on it must not be loaded again."""
    expect(page.locator("#signal")).to_have_attribute("data-is", "on")
    page.evaluate("window.same = true")


@contextmanager
def browser(program: str | None = None) -> Iterator[Browser]:
    """Start a browser: `program`, else the one of the whole run."""
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program or chromium_path(),
            # As root there is no sandbox to be had; a container's /dev/shm is small.
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
        )
        try:
            yield started
        finally:
            started.close()


@contextmanager
def context(
    started: Browser,
    *,
    language: str = "en",
    theme: str = "light",
    phone: bool = False,
) -> Iterator[BrowserContext]:
    """A browser of somebody's own: no cookies yet, their language, their theme."""
    made = started.new_context(
        locale="pt-BR" if language == "pt_BR" else "en-US",
        color_scheme="dark" if theme == "dark" else "light",
        viewport=PHONE if phone else WIDE,  # type: ignore[arg-type]
        timezone_id="America/Sao_Paulo",
        reduced_motion="reduce",
    )
    made.set_default_timeout(20_000)
    try:
        yield made
    finally:
        made.close()


def folder(path: str) -> Path:
    made = Path(path)
    made.mkdir(parents=True, exist_ok=True)
    return made
