"""Read a site through one proxy, and decide what its failures mean for the session."""

from collections.abc import Collection, Set
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode, urlsplit

from retoma.engine.isolation.isolate import Isolate, Limits
from retoma.engine.rules.errors import BadInput, Permanent, RetomaError, Transient
from retoma.outbound import FailureType, Outbound, Policy, Proxy
from retoma.programs.worker.adapters import Page, SiteAdapter, read_ads
from retoma.programs.worker.model import BLOCKED, Filters, SessionState
from retoma.words import say

REFUSED: Final = "proxy_refused"
BROWSER_GONE: Final = "browser_gone"
# 403: the site blocks our proxy. 407: the proxy rejects our credentials. Retrying helps in neither case.
ANSWERS: Final = {403: FailureType(Permanent, BLOCKED), 407: FailureType(Permanent, REFUSED)}
ANY: Final = frozenset(range(200, 600)) - {407}
DIAL: Final = 5.0  # seconds
LARGEST: Final = 8 << 20  # bytes of a page
LIMITS: Final = Limits(timeout=30.0, cpu=15.0, memory=512 << 20)
PORTS: Final = {"http": 80, "https": 443}


def proxy_at(server: str, user: str, password: str, *, plain: bool) -> Proxy:
    """Parse `host`, `host:port` or `http://host:port`. `plain`: the site is plain http, so the proxy resolves names."""
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        port = parts.port or PORTS.get(parts.scheme, 0)
        bare = not (parts.username or parts.password or parts.path.strip("/") or parts.query)
        if parts.scheme in PORTS and parts.hostname and bare:
            return Proxy(
                host=parts.hostname,
                port=port,
                user=user,
                password=password or None,
                tls=parts.scheme == "https",
                resolves=plain,
            )
    except ValueError:
        pass
    # Do not show the text: it may hold a password.
    raise BadInput(
        say("proxy.server must be a host and a port, such as proxy.example.com:8080")
    )


class Way:
    """Sends requests to the site, all through the same proxy."""

    def __init__(
        self,
        out: Outbound,
        proxy: Proxy,
        *,
        site: str,
        adapter: SiteAdapter,
        limit: float,
        private: Set[str],
        isolate: Isolate,
    ) -> None:
        """`limit`: seconds without an answer before a timeout. `private`: proxy hosts that the operator
        allows at private addresses."""
        self._out = out
        self._proxy = proxy
        self._site = site.rstrip("/")
        self._adapter = adapter
        self._isolate = isolate
        near = frozenset({proxy.host} & set(private))
        # The operator sets the site, so it may be at a private address.
        policy = Policy.toward(
            "site",
            site,
            private=True,
            read=limit,
            deadline=limit,
            most_bytes=LARGEST,
            most_unpacked=LARGEST,
            answers=ANSWERS,
        )
        self._policy = replace(policy, private=policy.private | near)
        scheme = "https" if proxy.tls else "http"
        self._door = f"{scheme}://{proxy.host}:{proxy.port}/"
        self._dial = Policy.toward(
            "proxy",
            self._door,
            private=bool(near),
            connect=min(DIAL, limit),
            read=min(DIAL, limit),
            deadline=min(DIAL, limit),
        )

    async def dial(self) -> None:
        """Check that the proxy accepts connections. Its answer does not matter."""
        try:
            await self._out.get(self._dial, self._door, accept=ANY)
        except Transient as error:
            if error.code == "no_answer":
                raise
        except Permanent as error:
            if error.code == "ssrf_blocked":
                raise

    async def prove(self) -> None:
        """Check that the proxy accepts our credentials: it forwards a request, whatever the site answers."""
        await self.fetch(f"{self._site}/robots.txt", ANY)

    async def page(self, filters: Filters, at: str | None) -> Page:
        path, query = self._adapter.query(filters, at)
        text = await self.fetch(f"{self._site}{path}?{urlencode(query)}")
        content = text.encode("utf-8", "replace")
        try:
            page: Page = await self._isolate.read(
                read_ads, content, self._adapter.name, limits=LIMITS
            )
        except TimeoutError:
            raise Transient(
                say("the page takes too long to parse"), code="bad_answer"
            ) from None
        return page

    async def fetch(self, url: str, accept: Collection[int] = ()) -> str:
        """Fetch a URL of the site. Any status but 2xx and those in `accept` raises."""
        answer = await self._out.get(self._policy, url, proxy=self._proxy, accept=accept)
        return answer.text()

    async def close(self) -> None:
        """Do nothing: no connection stays open between requests."""

    async def look(self) -> None:
        """Check that the proxy still works. A busy site does not count as a failure."""
        try:
            await self.prove()
        except Transient as error:
            if end_state_of(error) is not None:
                raise


def end_state_of(error: RetomaError) -> SessionState | None:
    """Return the state in which this failure ends a session; None if the session continues."""
    match getattr(error, "code", ""):
        case "timeout":
            return SessionState.STUCK
        case "no_answer" | "ssrf_blocked" | "proxy_refused" | "blocked" | "browser_gone":
            return SessionState.DISCONNECTED
        case _:
            return None
