"""Pages of a site, fetched: within its hosts and 2 MiB, tried a few times in one call, never read here.

What a status means is the site's to say, as data. An answer that is no success is kept as evidence too, so
it comes back with the failure it means.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from retoma.apps.matches.model import Verdict
from retoma.apps.matches.sites import Site
from retoma.engine.isolation.charset import charset_of
from retoma.engine.ports import chance
from retoma.engine.rules.errors import Permanent, Throttled, Transient
from retoma.outbound import Answer, Policy, Proxy
from retoma.outbound.failure_types import parse_retry_after
from retoma.toolkit.tools import Tools
from retoma.words import say

MIB: Final = 1 << 20
MOST_BYTES: Final = 2 * MIB  # of a page: larger ones are none (H-44)
REDIRECTS: Final = 3  # on the same site; the policy lets none lead away
AT_ONCE: Final = 10  # connections of one process to a site
TRIES: Final = 3  # in one call, so that a hiccup costs no attempt
BASE: Final = 0.5  # seconds before the second
LONGEST: Final = 5.0  # seconds: who is asked to wait for longer waits outside
NO_SUCCESS: Final = range(300, 600)
TOLD: Final = frozenset(  # what of an answer's head is evidence; cookies and the like are not
    {"content-type", "content-length", "date", "etag", "last-modified", "location"}
    | {"retry-after", "server", "via", "x-cache", "cf-ray"}
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a site has answered, and what it means where it is no page."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    failure: Transient | Permanent | None = None

    @property
    def charset(self) -> str | None:
        """As its header names it."""
        return charset_of(self.headers.get("content-type", ""))

    def evidence(self) -> dict[str, Any]:
        """In plain values, without the page itself."""
        return {"url": self.url, "status": self.status, "headers": dict(self.headers)}


class Fetcher:
    """Whatever page of our sites is asked for; one for each process."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._chance = chance()
        self._policies: dict[str, Policy] = {}  # by origin

    async def fetch(self, site: Site, url: str, through: Any = None) -> Fetched:
        """Raises what keeps us from any answer; one that is no success comes back with its failure.

        `through`: the address of a proxy, as it stands in a pool."""
        proxy = None if through is None else self._proxy(through)
        for turn in range(1, TRIES + 1):
            last = turn == TRIES
            try:
                fetched = await self._asked(site, url, proxy)
            except Transient:
                if last:
                    raise
                await self._wait(turn, None)
                continue
            failure = fetched.failure
            if last or not _may_pass(failure):
                return fetched
            await self._wait(turn, failure)
        raise AssertionError("one of them was the last")

    def _policy(self, origin: str) -> Policy:
        if origin not in self._policies:
            self._policies[origin] = Policy.toward(
                "matches",
                origin,
                deadline=30.0,
                most_bytes=MOST_BYTES,
                most_unpacked=MOST_BYTES,
                connections=AT_ONCE,
                redirects=REDIRECTS,
            )
        return self._policies[origin]

    def _proxy(self, told: Any) -> Proxy:
        """`http://user@host:port`; the password is a setting, so that no pool has to show it."""
        try:
            parts = urlsplit(told)
            port = parts.port
        except (ValueError, AttributeError, TypeError):
            raise _no_proxy() from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.password:
            raise _no_proxy()
        password = self._tools.settings.matches_proxy_password
        return Proxy(
            host=parts.hostname,
            port=port or (443 if parts.scheme == "https" else 80),
            user=unquote(parts.username or ""),
            password=password.get_secret_value() if password and parts.username else None,
            tls=parts.scheme == "https",
            resolves=True,
        )

    async def _asked(self, site: Site, url: str, proxy: Proxy | None) -> Fetched:
        policy = self._policy(site.origin)
        answer = await self._tools.out.get(policy, url, accept=NO_SUCCESS, proxy=proxy)
        told = {name: value for name, value in answer.headers.items() if name in TOLD}
        failure = self._meaning(site, answer)
        return Fetched(url, answer.status, told, answer.body, failure)

    def _meaning(self, site: Site, answer: Answer) -> Transient | Permanent | None:
        if answer.status < NO_SUCCESS.start:
            return None
        text = say("{where}: answered {status}", where=answer.where, status=answer.status)
        verdict = site.verdict(answer.status)
        if verdict is Verdict.FATAL:
            return Permanent(text, code="SITE_REFUSED")
        if verdict is Verdict.NOT_YET:
            return Transient(text, code="NOT_PUBLISHED")
        wait = parse_retry_after(answer.headers, self._tools.retoma.clock.wall())
        if answer.status == 429:
            return Throttled(text, retry_after=wait)
        return Transient(text, retry_after=wait)

    async def _wait(self, turn: int, failure: Transient | Permanent | None) -> None:
        """Exponential, with chance in it: a herd that was refused together spreads."""
        asked = failure.retry_after if isinstance(failure, Transient) else None
        wait = BASE * 2 ** (turn - 1) * self._chance.uniform(0.5, 1.0)
        await self._tools.retoma.clock.sleep(max(wait, asked or 0.0))


def _no_proxy() -> Transient:
    """Never what it says: it may hold a password. Another of the pool may do."""
    return Transient(
        say("an item of the pool is not an address such as http://user@host:port"),
        code="NO_PROXY",
    )


def _may_pass(failure: Transient | Permanent | None) -> bool:
    """Whether asking again in a moment may help."""
    return (
        isinstance(failure, Transient)
        and failure.code != "NOT_PUBLISHED"
        and (failure.retry_after or 0.0) <= LONGEST
    )
