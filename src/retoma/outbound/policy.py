"""What one purpose may reach, and how much it may bring home: checked at save and at use."""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import httpx2

from retoma.engine.rules.errors import BadInput
from retoma.outbound.addresses import literal, refusal
from retoma.outbound.sorting import Sort
from retoma.secret import Secret
from retoma.words import Said, say

PORTS: Final[Mapping[str, int]] = {"https": 443, "http": 80}
ANYWHERE: Final = "*"  # every public host: for pages that are found, not registered
MIB: Final = 1024 * 1024

NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
# 127.1, 0x7f.1 and 2130706433 are addresses to some and names to others: to us they are neither.
NUMBER: Final = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")


class Blocked(BadInput):
    """An address that leads where its purpose may not go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one purpose.

    `hosts` are names, `*.example.org` for all below a name, or `*`. Those in `private` may also be
    at private and loopback addresses, because the operator said so; none may be at a metadata
    service or another special address. `answers` says what a status means to this purpose. Where
    asking is `paid` for, also a GET that was sent and not answered may have happened.
    """

    purpose: str
    hosts: Set[str]
    schemes: Set[str] = frozenset({"https"})
    ports: Set[int] = frozenset()  # none named: the usual ones of the schemes
    private: Set[str] = frozenset()
    types: Set[str] = frozenset()  # of content; none named: any
    connect: float = 5.0  # seconds for each address of a host
    read: float = 30.0  # seconds without a byte
    deadline: float = 60.0  # seconds for everything: redirects, the last byte
    most_bytes: int = 10 * MIB  # as sent
    most_unpacked: int = 50 * MIB
    redirects: int = 0
    connections: int = 20
    environment: bool = False  # whether HTTPS_PROXY and its like are heard
    answers: Mapping[int, Sort] = field(default_factory=dict, hash=False)
    paid: bool = False

    def __post_init__(self) -> None:
        # Frozen from outside; this is still the making of it.
        for name in ("hosts", "private"):
            told = _many(name, getattr(self, name))
            object.__setattr__(self, name, frozenset(_pattern(each) for each in told))
        for name in ("schemes", "ports", "types"):
            object.__setattr__(self, name, frozenset(_many(name, getattr(self, name))))
        if not self.schemes or self.schemes - PORTS.keys():
            raise BadInput(say("policy {name}: a scheme is https or http", name=self.purpose))
        if not self.ports:
            object.__setattr__(self, "ports", frozenset(PORTS[each] for each in self.schemes))
        problems = [what for what, well in self._checks() if not well]
        if problems:
            raise BadInput(
                say(
                    "policy {name}: {problems}", name=self.purpose, problems="; ".join(problems)
                )
            )

    @classmethod
    def toward(cls, purpose: str, url: str, *, private: bool = False, **rules: Any) -> "Policy":
        """The one host, scheme and port of an address somebody trusted has set."""
        parsed = _parsed(url)
        host = host_of(parsed)
        return cls(
            purpose=purpose,
            hosts=frozenset({host}),
            schemes=frozenset({parsed.scheme}),
            ports=frozenset({port_of(parsed)}),
            private=frozenset({host} if private else ()),
            **rules,
        )

    def allowing(self, private: Set[str]) -> "Policy":
        """Itself, with those of its hosts private that the operator allows: only what it names,
        never what a pattern of it happens to meet."""
        more = frozenset(private & self.hosts) - self.private
        return _with_private(self, more) if more else self

    def check(self, url: str | httpx2.URL) -> httpx2.URL:
        """The address, read; Blocked where this purpose may not go there. Resolves no name."""
        parsed = _parsed(url)
        why = self._flaw(parsed, host_of(parsed))
        if why is not None:
            raise Blocked(
                say("{purpose} may not go there: {why}", purpose=self.purpose, why=why)
            )
        return parsed

    def _flaw(self, url: httpx2.URL, host: str) -> Said | None:
        """Why this purpose may not go there, if so."""
        if url.scheme not in self.schemes:
            known = _list(self.schemes)
            return say("{host}: the scheme is not one of {known}", host=host, known=known)
        if not self._lists(host):
            return say("{host} is not on its list", host=host)
        if port_of(url) not in self.ports:
            known = _list(self.ports)
            return say("{host}: the port is not one of {known}", host=host, known=known)
        address = literal(host)
        what = None if address is None else refusal(address, allowed=host in self.private)
        return None if what is None else say("{host} is {what}", host=host, what=what)

    def _lists(self, host: str) -> bool:
        if host in self.hosts or ANYWHERE in self.hosts:
            return True
        parents = host.split(".")
        return any(f"*.{'.'.join(parents[n:])}" in self.hosts for n in range(1, len(parents)))

    def _checks(self) -> list[tuple[str, bool]]:
        times = (self.connect, self.read, self.deadline)
        return [
            ("it names at least one host", bool(self.hosts)),
            ("private hosts are named one by one", ANYWHERE not in "".join(self.private)),
            ("times are more than nothing", all(each > 0 for each in times)),
            ("caps are not negative", min(self.most_bytes, self.most_unpacked) >= 0),
            ("ports are from 1 to 65535", all(0 < each < 65536 for each in self.ports)),
            ("redirects are from 0 to 10", 0 <= self.redirects <= 10),
            ("connections are at least 1", self.connections >= 1),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """An HTTP proxy, and who we are to it, which is in no text made of it.

    It is told the address we looked up and checked. One that looks names up itself (`resolves`) is
    trusted to reach nothing it should not; only such a one takes plain http.
    """

    host: str
    port: int
    user: str = field(default="", repr=False)  # some vendors hide a session in it
    password: Secret | str | None = None
    tls: bool = False
    resolves: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "host", host_name(self.host))
        if isinstance(self.password, str):
            object.__setattr__(self, "password", Secret(self.password))
        if not 0 < self.port < 65536 or ":" in self.user:
            raise BadInput(
                say("a proxy has a port from 1 to 65535, and a user without a colon")
            )

    @property
    def credentials(self) -> tuple[bytes, bytes] | None:
        if not self.user:
            return None
        return self.user.encode(), (revealed(self.password) or "").encode()


def private_hosts(text: str) -> frozenset[str]:
    """Names with commas between them, as the operator has set them; each by itself, no pattern."""
    named = [each.strip() for each in text.split(",") if each.strip()]
    if any(ANYWHERE in each for each in named):
        raise BadInput(say("private hosts are named one by one"))
    return frozenset(host_name(each) for each in named)


def revealed(value: Any) -> Any:
    """What goes over the wire, at the place where it does."""
    return value.reveal() if isinstance(value, Secret) else value


@lru_cache(maxsize=256)
def _with_private(policy: Policy, more: Set[str]) -> Policy:
    """Asked for with every call, and checked as a whole each time it is made."""
    return replace(policy, private=policy.private | more)


@lru_cache(maxsize=4096)
def host_name(text: str) -> str:
    """A host as we compare it: lower case, ASCII, an address in its one usual form."""
    try:
        host = httpx2.URL(scheme="https", host=text.strip("[]")).raw_host.decode()
    except (httpx2.InvalidURL, TypeError, ValueError):
        host = ""
    address = literal(host)
    if address is not None and "%" not in host:
        return str(address)
    # Never what was said: it may be half of a secret.
    if not NAME.fullmatch(host) or NUMBER.fullmatch(host):
        raise Blocked(say("that is not the name of a host"))
    return host


def host_of(url: httpx2.URL) -> str:
    return host_name(url.raw_host.decode())


def port_of(url: httpx2.URL) -> int:
    return PORTS.get(url.scheme, 0) if url.port is None else url.port


def _parsed(url: str | httpx2.URL) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError, ValueError):
        raise Blocked(say("that is not an address we understand")) from None
    if parsed.userinfo:
        raise Blocked(say("a name and a password do not belong into an address"))
    if parsed.scheme not in PORTS:
        raise Blocked(say("an address begins with https:// or http://"))
    return parsed


def _pattern(host: str) -> str:
    if host == ANYWHERE:
        return host
    return f"*.{host_name(host[2:])}" if host.startswith("*.") else host_name(host)


def _many(name: str, told: Iterable[Any]) -> Iterable[Any]:
    if isinstance(told, str):
        raise BadInput(say("policy: {name} are a set, not one text", name=name))
    return told


def _list(of: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, of)))
