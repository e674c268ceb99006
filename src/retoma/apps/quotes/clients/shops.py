"""Shops' pages: fetched within caps, never trusted; a picture of one is drawn without the network."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from retoma.apps.quotes.clients.reading import Looked, look_at_page
from retoma.apps.quotes.model import Offer, Tested
from retoma.engine.isolation.charset import charset_of, decode_text
from retoma.engine.isolation.isolate import ChildDied, Limits
from retoma.engine.rules.errors import Permanent, Transient
from retoma.outbound import FailureType, Outbound, Policy
from retoma.words import say

# Calls a function at the top of a module with a file of these bytes, in a child.
ReadApart = Callable[..., Awaitable[Any]]

MIB: Final = 1 << 20
LIMITS: Final = Limits(timeout=30.0, cpu=15.0, memory=512 * MIB)
AT_ONCE: Final = 2_000  # pages: how many there are is for slots and knobs to say
# What a shop's page says by its status alone.
BLOCKED: Final = FailureType(Permanent, "blocked")
GONE: Final = FailureType(Permanent, "page_gone")
ANSWERS: Final = {**dict.fromkeys((401, 402, 403, 407, 451), BLOCKED), 404: GONE, 410: GONE}


def shops_policy(places: str) -> Policy:
    """`*` for every public shop; a place of our own is named as host:port."""
    hosts, ports = set[str](), {80, 443}
    for place in filter(None, (each.strip() for each in places.split(","))):
        host, _, port = place.partition(":")
        hosts.add(host)
        if port:
            ports.add(int(port))
    return Policy(
        purpose="quotes shops",
        hosts=hosts,
        schemes=frozenset({"https", "http"}),
        ports=ports,
        redirects=3,
        deadline=30.0,
        most_bytes=3 * MIB,
        most_unpacked=8 * MIB,
        answers=ANSWERS,
        connections=AT_ONCE,
    )


@dataclass(frozen=True, slots=True)
class Page:
    """What a shop gave, and what it says."""

    tested: Tested
    html: bytes | None
    content_type: str = ""

    def text(self) -> str:
        return decode_text(self.html or b"", charset_of(self.content_type))


@dataclass(frozen=True, slots=True)
class Shops:
    """Whatever shop a search names."""

    out: Outbound
    policy: Policy
    read: ReadApart

    async def test(self, offer: Offer) -> Page:
        """A page that says nothing we may use is an answer too, and so is a shop that is away."""
        plain = Tested(offer.url, offer.store, offer.title)
        try:
            answer = await self.out.get(self.policy, offer.url)
        except (Permanent, Transient) as error:
            away = isinstance(error, Transient)
            told = replace(plain, code=error.code, message=str(error)[:300], away=away)
            return Page(told, None)
        kind = answer.headers.get("content-type", "")
        try:
            looked: Looked = await self.read(look_at_page, answer.body, kind, limits=LIMITS)
        except (ChildDied, TimeoutError):
            looked = Looked(
                code="page_too_hard", message=say("the page takes too long to parse")
            )
        tested = replace(
            plain,
            price=looked.price,
            method=looked.method,
            code=looked.code,
            message=looked.message,
        )
        return Page(tested, answer.body, kind)
