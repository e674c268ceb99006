"""Find, start and stop a headless Chromium, and render screenshots without network access.

Imported only if it is used: `pip install 'retoma[browser]'`.
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
TEMP_PATH: Final = (
    60  # characters: Chromium makes sockets there, whose paths may have at most 107
)
CLOSE: Final = 40.0  # seconds: after 30 the driver kills a browser that does not stop
# The only environment variables that the browser gets: no keys.
KNOWN: Final = ("PATH", "HOME", "LANG", "FONTCONFIG_PATH", "FONTCONFIG_FILE")

# Screenshots
WIDE, HIGH = 1280, 1600  # pixels; the rest of the page is cut off
LONGEST: Final = 15.0  # seconds for one picture
LET_GO: Final = 3.0  # seconds for a page to close
AT_ONCE: Final = 2  # pages drawn at a time: each takes a core
MOST_HTML: Final = 4 << 20  # characters
MOST_BYTES: Final = 5 << 20  # of a picture
REST: Final = 60.0  # seconds before the next try if the browser did not start
# Besides blocking all requests: no name resolves, and the proxy does not exist.
OFFLINE: Final = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)
NOWHERE: Final = {"server": "http://127.0.0.1:9", "bypass": "<-loopback>"}

MISSING: Final = (
    "Chromium is not installed: install it (on Debian: apt-get install chromium), "
    "or set RETOMA_CHROMIUM to its program"
)

log = get_logger("retoma.chromium")


def program(named: str | None = None) -> str | None:
    """Find Chromium: the named program, else one on the PATH; None for the one that playwright installed."""
    names = NAMES if named is None else (named,)
    return next((path for path in map(shutil.which, names) if path), None)


def installed_by_playwright() -> bool:
    """Whether this user has run `playwright install chromium`."""
    with sync_playwright() as driver:
        return shutil.which(driver.chromium.executable_path) is not None


async def start_driver() -> Playwright:
    """Start playwright's driver. Its temporary files are removed with this process's scratch folder."""
    before, folder = os.environ.get("TMPDIR"), _temp_folder()
    os.environ["TMPDIR"] = folder  # the driver inherits the environment
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
        # This process handles signals itself.
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
    )


async def stop_driver(driver: Playwright) -> None:
    """Stop the driver and its browsers. When this returns they send nothing more."""
    try:
        async with asyncio.timeout(CLOSE):
            await driver.stop()
    except (TimeoutError, Error):
        log.exception("chromium.stays")


class Painter:
    """Renders screenshots of HTML without scripts and network. Uses one browser per process, which starts
    with the first screenshot, restarts after a crash, and stops at `close`."""

    def __init__(self, named: str | None = None, *, longest: float = LONGEST) -> None:
        """`named`: Chromium's program; by default one on the PATH, else the one that playwright installed."""
        self._program = named or program()
        self.longest = longest
        self._driver: Playwright | None = None
        self._up: asyncio.Task[Browser] | None = None
        self._rests_until = 0.0
        self._lock = asyncio.Lock()
        self._seats = asyncio.Semaphore(AT_ONCE)

    async def draw(self, html: str) -> bytes | str:
        """Render the top of a page as PNG; returns the reason as text if that fails. Never raises for a page."""
        if len(html) > MOST_HTML:
            return say("the page is too large for a screenshot")
        async with self._seats:
            try:
                picture = await self._drawn(html)
            except Exception as error:  # noqa: BLE001 — a driver that dies may raise anything
                return _first_line(error)
        fits = isinstance(picture, str) or len(picture) <= MOST_BYTES
        return picture if fits else say("the screenshot is too large to be stored")

    async def close(self) -> None:
        async with self._lock:
            await self._leave()

    async def _drawn(self, html: str) -> bytes | str:
        if asyncio.get_running_loop().time() < self._rests_until:
            return say("the browser does not start here")
        browser = await self._browser()
        try:
            async with asyncio.timeout(self.longest):
                return await _drawn(browser, html)
        except TimeoutError:
            await self._drop(browser)  # the browser hangs
            return say("no screenshot within {seconds:g} s", seconds=self.longest)

    async def _browser(self) -> Browser:
        async with self._lock:
            if self._up is not None and self._up.done() and not _is_running(self._up):
                await self._leave()
            if self._up is None:
                self._up = asyncio.create_task(self._start())
            up = self._up
        # Shielded, because `close` must know a browser that was started, even if the caller is cancelled.
        return await asyncio.shield(up)

    async def _start(self) -> Browser:
        try:
            self._driver = await start_driver()
            return await launch(self._driver, self._program, args=OFFLINE, proxy=NOWHERE)
        except (Error, OSError) as error:
            self._rests_until = asyncio.get_running_loop().time() + REST
            log.warning("chromium.not_started", why=_first_line(error))
            raise

    async def _drop(self, browser: Browser) -> None:
        async with self._lock:
            if self._up is not None and self._up.done() and browser is self._up.result():
                await self._leave()

    async def _leave(self) -> None:
        up, self._up = self._up, None
        if up is not None:
            await asyncio.wait({up})
        driver, self._driver = self._driver, None
        if driver is not None:
            await stop_driver(driver)


def _is_running(up: asyncio.Task[Browser]) -> bool:
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
        )  # any other code would turn a redirecting page into an error page


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]
