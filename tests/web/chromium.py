"""A real browser for the tests: found or fetched, one for a whole run, driven by playwright.

Looked for in this order: the path in `RETOMA_TEST_CHROMIUM`; a program on the PATH; as root on Debian,
`apt-get install chromium` (`NO_APT=1` forbids it). There is no wheel that brings one.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.house.files import ROOT
from tests.services import MissingService, installed_by_apt, say

ADDRESS = "RETOMA_TEST_CHROMIUM"
PATIENCE = 40_000  # milliseconds: of a machine that has other tests to do
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


@cache
def chromium_path() -> str:
    """The program, from the first place that has one."""
    began = time.monotonic()
    found = os.environ.get(ADDRESS) or _on_path() or _by_apt()
    if found is None:
        raise MissingService(
            "Chromium is missing: install it (Debian: apt-get install chromium"
            f" fonts-dejavu-core), or set {ADDRESS} to its path"
        )
    asked = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    say(f"{asked.stdout.strip() or found} ({time.monotonic() - began:.1f} s)")
    return found


def _by_apt() -> str | None:
    """Of several workers one installs it; the others wait, and find it."""
    with (Path(tempfile.gettempdir()) / "retoma-chromium.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if _on_path() is None and installed_by_apt("Chromium", "chromium"):
            installed_by_apt("a font", "fonts-dejavu-core")
        return _on_path()


def _on_path() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


def axe_source() -> str:
    if not AXE.is_file():
        raise MissingService("axe-core is missing: ./run test fetches it, or npm ci")
    return AXE.read_text(encoding="utf-8")


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
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium_path(),
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
