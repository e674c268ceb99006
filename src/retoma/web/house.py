"""What every route needs: the library, who may come in, how the house is set up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, cast
from urllib.parse import urlsplit

from fastapi import Depends, Request

from retoma.access import Access
from retoma.engine.handlers.kinds import Kinds
from retoma.library import Retoma
from retoma.manifest import Application
from retoma.settings import Settings, read
from retoma.web.bounds import Bound
from retoma.web.broadcast import Broadcaster
from retoma.web.problems import Refusal
from retoma.web.repeats import Repeats
from retoma.web.room import Room
from retoma.web.visit import VISIT, Visit
from retoma.words import say

HOUSE: Final = "retoma.house"
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
HTTPS: Final = 443
HTTP: Final = 80
SHUNNED: Final = 30.0  # seconds after a write found no room: let balancers send work elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """How we are reached from outside."""

    host: str = "127.0.0.1"
    port: int = 8321
    public_url: str | None = None  # where a proxy stands before us: https://retoma.example.org

    @property
    def is_loopback(self) -> bool:
        return self.host in ("127.0.0.1", "localhost", "::1") or self.host.startswith("127.")

    @property
    def is_near(self) -> bool:
        """Only this machine can reach us: no proxy stands before us either."""
        return self.is_loopback and self.public_url is None

    @property
    def origin(self) -> str:
        """What people type, without a path."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{'127.0.0.1' if shown in ('0.0.0.0', '[::]') else shown}:{self.port}"  # noqa: S104

    @property
    def secure(self) -> bool:
        return self.origin.startswith("https:")

    @property
    def hosts(self) -> frozenset[str] | None:
        """By which names a request may call us. Beyond loopback, and with no name given: by any."""
        named = urlsplit(self.public_url).netloc.lower() if self.public_url else None
        if named is None and not self.is_loopback:
            return None
        near = {f"{name}:{self.port}" for name in LOOPBACK}
        if self.port == HTTP:
            near |= set(LOOPBACK)
        return frozenset(near | ({named} if named else set()))


@dataclass(slots=True)
class House:
    """One for each site."""

    retoma: Retoma
    face: Face
    bound: Bound
    applications: Sequence[Application] = ()
    api_key: str | None = None
    settings: Settings = field(default_factory=read)
    _full_until: float = float("-inf")
    own: Kinds = field(default_factory=Kinds)  # kinds of the house itself
    queries: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    named: frozenset[str] = frozenset()  # addresses that are routes as they stand
    room: Room = field(default_factory=Room)  # for bodies that are large
    broadcaster: Broadcaster = field(init=False)  # asks nobody until somebody listens
    repeats: Repeats = field(init=False)
    _access: Access | None = None

    def __post_init__(self) -> None:
        self.broadcaster = Broadcaster(self.retoma.database, self.retoma.clock)
        self.repeats = Repeats(self.retoma.clock)

    async def access(self) -> Access:
        """Who may come in; made when the database is first needed."""
        if self._access is None:
            database = await self.retoma.database()
            self._access = Access(
                database, self.retoma.clock, self.retoma.ids, env_key=self.api_key
            )
        return self._access

    def found_full(self) -> None:
        """A write found no room; only the next large one would tell that there is some again."""
        self._full_until = self.retoma.clock.now() + SHUNNED

    @property
    def is_full(self) -> bool:
        return self.retoma.clock.now() < self._full_until

    def check_may_submit(self, kind: str) -> None:
        """Refuse a kind that no application lets be submitted as it is."""
        for application in self.applications:
            if application.submits and any(
                each.name == kind for each in application.own_kinds()
            ):
                return
        raise Refusal("unknown_kind", say("no job {kind!r} can be submitted here", kind=kind))


def house_of(request: Request) -> House:
    return cast("House", request.app.state.house)


def visit_at(request: Request) -> Visit:
    return cast("Visit", request.scope[VISIT])


AHouse = Annotated[House, Depends(house_of)]
AVisit = Annotated[Visit, Depends(visit_at)]
