"""The way to the site in a browser, for sites whose pages are made by scripts: headless Chromium,
one for each session, through the session's proxy and no other way.

Imported only where somebody asked for it: `pip install 'retoma[browser]'`.
"""

import asyncio
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from playwright.async_api import Error, Page, Playwright, Response
from playwright.async_api import TimeoutError as Late

from retoma.chromium import launch, leave, start_driver
from retoma.engine.rules.errors import Permanent, RetomaError, Transient
from retoma.engine.rules.retry import retry_after
from retoma.outbound import Blocked, FailureType, Proxy
from retoma.outbound.failure_types import classify_status
from retoma.outbound.policy import reveal_secret
from retoma.programs.worker.way import ANSWERS, BROWSER_GONE, REFUSED, Way
from retoma.words import say

LOCALE: Final = "en-US"  # else it would be the machine's, and pages would differ by machine
ARGUMENTS: Final = (
    # What is no HTTP would go beside the proxy.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
NET: Final = re.compile(r"net::(ERR_[A-Z0-9_]+)")
LATE: Final = FailureType(Transient, "timeout")
SILENCE: Final = FailureType(Transient, "no_answer")
BROKEN: Final = FailureType(Transient, "bad_answer")
UNKNOWN_TO_PROXY: Final = FailureType(Permanent, REFUSED)
NET_ERRORS: Final[Mapping[str, FailureType]] = {
    "ERR_TIMED_OUT": LATE,
    "ERR_CONNECTION_TIMED_OUT": LATE,
    "ERR_INVALID_AUTH_CREDENTIALS": UNKNOWN_TO_PROXY,
    "ERR_PROXY_AUTH_REQUESTED": UNKNOWN_TO_PROXY,
    "ERR_PROXY_AUTH_UNSUPPORTED": UNKNOWN_TO_PROXY,
    "ERR_UNEXPECTED_PROXY_AUTH": UNKNOWN_TO_PROXY,
    "ERR_ABORTED": BROKEN,  # nothing that a browser would show
    "ERR_CONTENT_LENGTH_MISMATCH": BROKEN,
    "ERR_EMPTY_RESPONSE": BROKEN,
    "ERR_INCOMPLETE_CHUNKED_ENCODING": BROKEN,
    "ERR_INVALID_HTTP_RESPONSE": BROKEN,
}


class BrowserWay(Way):
    """Pages as a browser shows them once they are loaded. It starts with the first of them; one
    that has ended is not started again: its session is over."""

    def __init__(self, *way: Any, chromium: str | None = None, **rules: Any) -> None:
        """`chromium`: the program; else the one that playwright has installed."""
        super().__init__(*way, **rules)
        self._chromium = chromium
        self._driver: Playwright | None = None
        self._up: asyncio.Task[Page] | None = None
        self._closed = False
        self._turn = asyncio.Lock()  # one tab

    async def fetch(self, url: str, accept: Collection[int] = ()) -> str:
        async with self._turn:
            tab = await self._tab()
            failed: RetomaError
            try:
                async with asyncio.timeout(self._policy.deadline):
                    return await self._shown(tab, url, accept)
            except TimeoutError:
                failed = _failure(LATE, "no end within its time")
            except Error as error:
                failed = _closed() if self._closed else _meaning(error)
        raise failed

    async def close(self) -> None:
        """When this returns it is gone, and sends nothing more."""
        self._closed = True
        if self._up is not None:
            await asyncio.wait({self._up})
        if self._driver is not None:
            await leave(self._driver)
            self._driver = None

    # — the browser —

    async def _tab(self) -> Page:
        if self._closed:
            raise _closed()
        if self._up is None:
            self._up = asyncio.create_task(self._start())
        # Whoever waits may be sent away; what was started must be known to who closes it.
        return await asyncio.shield(self._up)

    async def _start(self) -> Page:
        try:
            self._driver = await start_driver()
            started = await launch(
                self._driver,
                self._chromium,
                args=ARGUMENTS,
                proxy=_told(self._door, self._proxy),
            )
            context = await started.new_context(locale=LOCALE, accept_downloads=False)
            return await context.new_page()
        except (Error, OSError) as error:
            why = str(error).partition("\n")[0]
        raise Permanent(say("the browser did not start: {why}", why=why), code=BROWSER_GONE)

    async def _shown(self, tab: Page, url: str, accept: Collection[int]) -> str:
        answers: list[Response] = []

        def keep(answer: Response) -> None:
            if answer.request.is_navigation_request() and answer.frame == tab.main_frame:
                answers.append(answer)

        tab.on("response", keep)
        try:
            await tab.goto(url, wait_until="load", timeout=self._policy.deadline * 1000)
        except Error:
            # An error without a body is none to a browser: what it said counts all the same.
            if not answers or 200 <= answers[-1].status < 300:
                raise
        finally:
            tab.remove_listener("response", keep)
        if answers:
            await self._check(answers[-1], accept)
        text = await tab.content()
        if len(text) > self._policy.most_unpacked:
            raise Permanent(say("site: the answer is larger than agreed"), code="too_large")
        return text

    async def _check(self, answer: Response, accept: Collection[int]) -> None:
        """It may lead on within the site, and nowhere else."""
        try:
            self._policy.check(answer.url)
        except Blocked:
            raise Permanent(say("site: it leads elsewhere")) from None
        if 200 <= answer.status < 300 or answer.status in accept:
            return
        sort = classify_status(answer.status, ANSWERS)
        said = await answer.header_value("retry-after")
        raise _failure(sort, say("answered {status}", status=answer.status), retry_after(said))


def _told(door: str, proxy: Proxy) -> Any:
    """A proxy, as playwright wants it; a site on this machine is no exception."""
    told = {"server": door.rstrip("/"), "bypass": "<-loopback>"}
    if proxy.user:
        told |= {"username": proxy.user, "password": reveal_secret(proxy.password) or ""}
    return told


def _closed() -> RetomaError:
    """By us, which says nothing of the session: a worker that leaves brings it up again."""
    return Transient(say("the browser of this session is closed"), code="browser_closed")


def _meaning(error: Error) -> RetomaError:
    """Not what it says itself: that may hold an address with all its parameters."""
    found = NET.search(str(error))
    if found is not None:
        return _failure(NET_ERRORS.get(found[1], SILENCE), found[1])
    if isinstance(error, Late):
        return _failure(LATE, say("the answer timed out"))
    return Permanent(say("the browser of this session is gone"), code=BROWSER_GONE)


def _failure(sort: FailureType, what: str, wait: float | None = None) -> RetomaError:
    if issubclass(sort.raises, Transient):
        return sort.raises(f"site: {what}", code=sort.code, retry_after=wait)
    return Permanent(f"site: {what}", code=sort.code)
