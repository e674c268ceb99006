"""Read a site with a headless Chromium, for pages that need scripts: one browser per session, through the session's proxy.

Imported only if it is used: `pip install 'retoma[browser]'`.
"""

import asyncio
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from playwright.async_api import Error, Page, Playwright, Response
from playwright.async_api import TimeoutError as Late

from retoma.chromium import launch, start_driver, stop_driver
from retoma.engine.rules.errors import Permanent, RetomaError, Transient
from retoma.engine.rules.retry import retry_after
from retoma.outbound import Blocked, FailureType, Proxy
from retoma.outbound.failure_types import classify_status
from retoma.outbound.policy import reveal_secret
from retoma.programs.worker.way import ANSWERS, BROWSER_GONE, REFUSED, Way
from retoma.words import say

LOCALE: Final = "en-US"  # fixed, so that pages do not depend on the machine
ARGUMENTS: Final = (
    # Without it, traffic that is not HTTP would bypass the proxy.
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
    "ERR_ABORTED": BROKEN,  # content that the browser cannot show
    "ERR_CONTENT_LENGTH_MISMATCH": BROKEN,
    "ERR_EMPTY_RESPONSE": BROKEN,
    "ERR_INCOMPLETE_CHUNKED_ENCODING": BROKEN,
    "ERR_INVALID_HTTP_RESPONSE": BROKEN,
}


class BrowserWay(Way):
    """Reads pages after their scripts ran. The browser starts with the first page; if it crashes, its
    session is over."""

    def __init__(self, *way: Any, chromium: str | None = None, **rules: Any) -> None:
        """`chromium`: the program; by default the one that playwright installed."""
        super().__init__(*way, **rules)
        self._chromium = chromium
        self._driver: Playwright | None = None
        self._up: asyncio.Task[Page] | None = None
        self._closed = False
        self._lock = asyncio.Lock()  # there is one tab

    async def fetch(self, url: str, accept: Collection[int] = ()) -> str:
        async with self._lock:
            tab = await self._tab()
            failed: RetomaError
            try:
                async with asyncio.timeout(self._policy.deadline):
                    return await self._shown(tab, url, accept)
            except TimeoutError:
                failed = _failure(LATE, "the deadline passed")
            except Error as error:
                failed = _closed() if self._closed else _classify_error(error)
        raise failed

    async def close(self) -> None:
        """Stop the browser. When this returns it sends nothing more."""
        self._closed = True
        if self._up is not None:
            await asyncio.wait({self._up})
        if self._driver is not None:
            await stop_driver(self._driver)
            self._driver = None

    async def _tab(self) -> Page:
        if self._closed:
            raise _closed()
        if self._up is None:
            self._up = asyncio.create_task(self._start())
        # Shielded, because `close` must know a browser that was started, even if the caller is cancelled.
        return await asyncio.shield(self._up)

    async def _start(self) -> Page:
        try:
            self._driver = await start_driver()
            started = await launch(
                self._driver,
                self._chromium,
                args=ARGUMENTS,
                proxy=_proxy_options(self._door, self._proxy),
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
            # The browser reports an error answer without a body as a failure; the answer's status counts.
            if not answers or 200 <= answers[-1].status < 300:
                raise
        finally:
            tab.remove_listener("response", keep)
        if answers:
            await self._check(answers[-1], accept)
        text = await tab.content()
        if len(text) > self._policy.most_unpacked:
            raise Permanent(say("site: the answer is larger than the limit"), code="too_large")
        return text

    async def _check(self, answer: Response, accept: Collection[int]) -> None:
        """Check the final answer: redirects must stay within the site."""
        try:
            self._policy.check(answer.url)
        except Blocked:
            raise Permanent(say("site: redirects to another site are not followed")) from None
        if 200 <= answer.status < 300 or answer.status in accept:
            return
        failure_type = classify_status(answer.status, ANSWERS)
        header = await answer.header_value("retry-after")
        raise _failure(
            failure_type, say("answered {status}", status=answer.status), retry_after(header)
        )


def _proxy_options(door: str, proxy: Proxy) -> Any:
    """Return playwright's options for a proxy, which is used for loopback sites too."""
    options = {"server": door.rstrip("/"), "bypass": "<-loopback>"}
    if proxy.user:
        options |= {"username": proxy.user, "password": reveal_secret(proxy.password) or ""}
    return options


def _closed() -> RetomaError:
    """Return the error of a browser that we closed. The session is not over: a restarted worker resumes it."""
    return Transient(say("the browser of this session is closed"), code="browser_closed")


def _classify_error(error: Error) -> RetomaError:
    """Translate a playwright error without its message, which may contain a URL with parameters."""
    match = NET.search(str(error))
    if match is not None:
        return _failure(NET_ERRORS.get(match[1], SILENCE), match[1])
    if isinstance(error, Late):
        return _failure(LATE, say("the answer timed out"))
    return Permanent(say("the browser of this session is gone"), code=BROWSER_GONE)


def _failure(failure_type: FailureType, what: str, wait: float | None = None) -> RetomaError:
    if issubclass(failure_type.raises, Transient):
        return failure_type.raises(f"site: {what}", code=failure_type.code, retry_after=wait)
    return Permanent(f"site: {what}", code=failure_type.code)
