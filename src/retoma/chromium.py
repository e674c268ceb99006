"""A headless Chromium of ours: how it is found, started and ended; and pictures, drawn without the network.

Imported only where somebody asked for it: `pip install 'retoma[browser]'`.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from playwright.async_api import Browser, Error, Playwright, Route, async_playwright
from playwright.sync_api import sync_playwright

from retoma.engine.isolation.scratch import scratch
from retoma.engine.log import get_logger
from retoma.words import say

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LAUNCH: Final = 30.0  # seconds
TEMP_PATH: Final = 60  # characters: a browser makes sockets there, whose paths have at most 107
CLOSE: Final = 40.0  # seconds: after 30 of them its driver has killed one that does not listen
# What pages of strangers run in knows none of our keys.
KNOWN: Final = ("PATH", "HOME", "LANG", "FONTCONFIG_PATH", "FONTCONFIG_FILE")

# — of pictures —
WIDE, HIGH = 1280, 1600  # pixels; what lies below is in the page itself
LONGEST: Final = 15.0  # seconds for one picture
LET_GO: Final = 3.0  # seconds for a page to close
AT_ONCE: Final = 2  # pages drawn at a time: each takes a core
MOST_HTML: Final = 4 << 20  # characters
MOST_BYTES: Final = 5 << 20  # of a picture
REST: Final = 60.0  # seconds after a browser that did not start, before another is tried
# Beside the rule that nothing is fetched: no name is found, and the only way out leads nowhere.
OFFLINE: Final = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)
NOWHERE: Final = {"server": "http://127.0.0.1:9", "bypass": "<-loopback>"}

MISSING: Final = (
    "there is no Chromium: install one (on Debian: apt-get install chromium), "
    "or name its program in RETOMA_CHROMIUM"
)

log = get_logger("retoma.chromium")


def program(named: str | None = None) -> str | None:
    """The one that was named, else one on the PATH; None: the one that playwright has installed."""
    names = NAMES if named is None else (named,)
    return next((each for each in map(shutil.which, names) if each), None)


def installed_by_playwright() -> bool:
    """Tell whether `playwright install chromium` was run by this user."""
    with sync_playwright() as driver:
        return shutil.which(driver.chromium.executable_path) is not None


async def start_driver() -> Playwright:
    """Start the program that starts browsers. What they write goes with this process, however that ends."""
    before, folder = os.environ.get("TMPDIR"), _temp_folder()
    os.environ["TMPDIR"] = folder  # the driver takes no environment but ours
    try:
        return await async_playwright().start()
    finally:
        if before is None:
            os.environ.pop("TMPDIR", None)
        elif before != folder:
            os.environ["TMPDIR"] = before


def _temp_folder() -> str:
    folder = str(scratch())
    return folder if len(folder) <= TEMP_PATH else tempfile.gettempdir()


async def launch(
    driver: Playwright, chromium: str | None, *, args: Sequence[str] = (), proxy: Any = None
) -> Browser:
    if chromium is None and shutil.which(driver.chromium.executable_path) is None:
        raise FileNotFoundError(MISSING)
    return await driver.chromium.launch(
        executable_path=chromium,
        headless=True,
        chromium_sandbox=os.geteuid() != 0,  # root has none
        args=args,
        proxy=proxy,
        env={
            **{name: os.environ[name] for name in KNOWN if name in os.environ},
            "TMPDIR": _temp_folder(),
        },
        timeout=LAUNCH * 1000,
        # When to leave is ours to say.
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
    )


async def leave(driver: Playwright) -> None:
    """When this returns its browsers are gone, and send nothing more."""
    try:
        async with asyncio.timeout(CLOSE):
            await driver.stop()
    except (TimeoutError, Error):
        log.exception("chromium.stays")


class Painter:
    """Pictures of pages as they came: no script runs, nothing is fetched. One browser for a process:
    started with the first picture, anew after it has ended, gone when this is closed."""

    def __init__(self, named: str | None = None, *, longest: float = LONGEST) -> None:
        """`named`: the program; else one on the PATH, else the one that playwright has installed."""
        self._program = named or program()
        self.longest = longest
        self._driver: Playwright | None = None
        self._up: asyncio.Task[Browser] | None = None
        self._rests_until = 0.0
        self._turn = asyncio.Lock()
        self._seats = asyncio.Semaphore(AT_ONCE)

    async def draw(self, html: str) -> bytes | str:
        """A PNG of its upper part; or, in words, why there is none. It never fails for a page."""
        if len(html) > MOST_HTML:
            return say("the page is too large to be drawn")
        async with self._seats:
            try:
                picture = await self._drawn(html)
            except Exception as error:  # noqa: BLE001 — a driver that dies raises whatever it likes
                return _told(error)
        fits = isinstance(picture, str) or len(picture) <= MOST_BYTES
        return picture if fits else say("the picture is too large to be kept")

    async def close(self) -> None:
        async with self._turn:
            await self._leave()

    async def _drawn(self, html: str) -> bytes | str:
        if asyncio.get_running_loop().time() < self._rests_until:
            return say("no browser starts here")
        browser = await self._browser()
        try:
            async with asyncio.timeout(self.longest):
                return await _drawn(browser, html)
        except TimeoutError:
            await self._drop(browser)  # whatever it is at, it does not let go
            return say("not drawn within {seconds:g} s", seconds=self.longest)

    async def _browser(self) -> Browser:
        async with self._turn:
            if self._up is not None and self._up.done() and not _lives(self._up):
                await self._leave()
            if self._up is None:
                self._up = asyncio.create_task(self._start())
            up = self._up
        # Whoever waits may be sent away; what was started must be known to who closes it.
        return await asyncio.shield(up)

    async def _start(self) -> Browser:
        try:
            self._driver = await start_driver()
            return await launch(self._driver, self._program, args=OFFLINE, proxy=NOWHERE)
        except (Error, OSError) as error:
            self._rests_until = asyncio.get_running_loop().time() + REST
            log.warning("chromium.not_started", why=_told(error))
            raise

    async def _drop(self, browser: Browser) -> None:
        async with self._turn:
            if self._up is not None and self._up.done() and browser is self._up.result():
                await self._leave()

    async def _leave(self) -> None:
        up, self._up = self._up, None
        if up is not None:
            await asyncio.wait({up})
        driver, self._driver = self._driver, None
        if driver is not None:
            await leave(driver)


def _lives(up: asyncio.Task[Browser]) -> bool:
    return up.exception() is None and up.result().is_connected()


async def _drawn(browser: Browser, html: str) -> bytes:
    context = await browser.new_context(
        viewport={"width": WIDE, "height": HIGH},
        java_script_enabled=False,
        offline=True,
        service_workers="block",
        accept_downloads=False,
        reduced_motion="reduce",
        locale="pt-BR",
    )
    try:
        await context.route("**/*", _refused)
        page = await context.new_page()
        await page.set_content(html, wait_until="domcontentloaded", timeout=LONGEST * 1000)
        return await page.screenshot(type="png", animations="disabled", timeout=LONGEST * 1000)
    finally:
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(LET_GO):
                await context.close()


async def _refused(route: Route) -> None:
    with suppress(Error):
        await route.abort(
            "aborted"
        )  # of another sort, a page that wants to lead on were an error's


def _told(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]
