"""Policies of outbound requests: which hosts one purpose may reach, and the limits of its answers."""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import httpx2

from retoma.engine.rules.errors import BadInput
from retoma.outbound.addresses import blocked_reason, parse_address
from retoma.outbound.failure_types import FailureType
from retoma.secret import Secret
from retoma.words import Said, say

PORTS: Final[Mapping[str, int]] = {"https": 443, "http": 80}
ANYWHERE: Final = "*"  # every public host
MIB: Final = 1024 * 1024

NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
# Some resolvers read 127.1, 0x7f.1 and 2130706433 as addresses, others as names: we reject them.
NUMBER: Final = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")


class Blocked(BadInput):
    """The policy of a purpose does not allow this address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one purpose.

    `hosts` are names, `*.example.org` for all subdomains, or `*`. Hosts in `private` may resolve to
    private and loopback addresses, if the operator allows it; metadata services and other special
    addresses stay forbidden. `answers` maps a status to a failure type. If requests are `paid`, a
    GET that was sent and not answered counts as unsure too.
    """

    purpose: str
    hosts: Set[str]
    schemes: Set[str] = frozenset({"https"})
    ports: Set[int] = frozenset()  # empty: the default ports of the schemes
    private: Set[str] = frozenset()
    types: Set[str] = frozenset()  # content types; empty: any
    connect: float = 5.0  # seconds for each address of a host
    read: float = 30.0  # seconds without a byte
    deadline: float = 60.0  # seconds for the whole call, redirects included
    most_bytes: int = 10 * MIB  # as sent
    most_unpacked: int = 50 * MIB
    redirects: int = 0
    connections: int = 20
    environment: bool = False  # use HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY
    answers: Mapping[int, FailureType] = field(default_factory=dict, hash=False)
    paid: bool = False

    def __post_init__(self) -> None:
        # The dataclass is frozen; this normalises its fields during construction.
        for name in ("hosts", "private"):
            hosts = _check_is_set(name, getattr(self, name))
            object.__setattr__(self, name, frozenset(_pattern(host) for host in hosts))
        for name in ("schemes", "ports", "types"):
            object.__setattr__(self, name, frozenset(_check_is_set(name, getattr(self, name))))
        if not self.schemes or self.schemes - PORTS.keys():
            raise BadInput(
                say("policy {name}: the schemes must be https or http", name=self.purpose)
            )
        if not self.ports:
            object.__setattr__(
                self, "ports", frozenset(PORTS[scheme] for scheme in self.schemes)
            )
        problems = [rule for rule, holds in self._checks() if not holds]
        if problems:
            raise BadInput(
                say(
                    "policy {name}: {problems}", name=self.purpose, problems="; ".join(problems)
                )
            )

    @classmethod
    def toward(cls, purpose: str, url: str, *, private: bool = False, **rules: Any) -> "Policy":
        """Make a policy for exactly the host, scheme and port of a trusted URL."""
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
        """Return this policy with private addresses allowed for the given hosts. Only hosts that the
        policy names count, not hosts that a pattern matches."""
        more = frozenset(private & self.hosts) - self.private
        return _with_private(self, more) if more else self

    def check(self, url: str | httpx2.URL) -> httpx2.URL:
        """Parse the URL; Blocked if this purpose may not use it. Does not resolve names."""
        parsed = _parsed(url)
        why = self._why_blocked(parsed, host_of(parsed))
        if why is not None:
            raise Blocked(
                say(
                    "purpose {purpose} may not use this address: {why}",
                    purpose=self.purpose,
                    why=why,
                )
            )
        return parsed

    def _why_blocked(self, url: httpx2.URL, host: str) -> Said | None:
        """Return why this purpose may not use the URL, or None."""
        if url.scheme not in self.schemes:
            known = _list(self.schemes)
            return say("{host}: the scheme is not one of {known}", host=host, known=known)
        if not self._lists(host):
            return say("host {host} is not on its list of hosts", host=host)
        if port_of(url) not in self.ports:
            known = _list(self.ports)
            return say("{host}: the port is not one of {known}", host=host, known=known)
        address = parse_address(host)
        what = (
            None if address is None else blocked_reason(address, allowed=host in self.private)
        )
        return None if what is None else say("{host} is {what}", host=host, what=what)

    def _lists(self, host: str) -> bool:
        if host in self.hosts or ANYWHERE in self.hosts:
            return True
        parents = host.split(".")
        return any(f"*.{'.'.join(parents[n:])}" in self.hosts for n in range(1, len(parents)))

    def _checks(self) -> list[tuple[str, bool]]:
        times = (self.connect, self.read, self.deadline)
        return [
            ("hosts must not be empty", bool(self.hosts)),
            ("private hosts must be exact names", ANYWHERE not in "".join(self.private)),
            ("times must be positive", all(seconds > 0 for seconds in times)),
            ("size limits must not be negative", min(self.most_bytes, self.most_unpacked) >= 0),
            ("ports must be from 1 to 65535", all(0 < port < 65536 for port in self.ports)),
            ("redirects must be from 0 to 10", 0 <= self.redirects <= 10),
            ("connections must be at least 1", self.connections >= 1),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """An HTTP proxy and its credentials, which its repr does not show.

    The client sends it the IP address that was resolved and checked. A proxy with `resolves` gets
    the host name instead and is trusted to block special addresses; plain http needs such a proxy.
    """

    host: str
    port: int
    user: str = field(default="", repr=False)  # some vendors put a session id in it
    password: Secret | str | None = None
    tls: bool = False
    resolves: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "host", host_name(self.host))
        if isinstance(self.password, str):
            object.__setattr__(self, "password", Secret(self.password))
        if not 0 < self.port < 65536 or ":" in self.user:
            raise BadInput(
                say("a proxy needs a port from 1 to 65535, and a user without a colon")
            )

    @property
    def credentials(self) -> tuple[bytes, bytes] | None:
        if not self.user:
            return None
        return self.user.encode(), (reveal_secret(self.password) or "").encode()


def private_hosts(text: str) -> frozenset[str]:
    """Parse the operator's comma-separated private hosts: exact names, no patterns."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if any(ANYWHERE in name for name in names):
        raise BadInput(say("private hosts must be exact names, without *"))
    return frozenset(host_name(name) for name in names)


def reveal_secret(value: Any) -> Any:
    """Reveal a Secret right before it is sent; return other values unchanged."""
    return value.reveal() if isinstance(value, Secret) else value


@lru_cache(maxsize=256)
def _with_private(policy: Policy, more: Set[str]) -> Policy:
    """Cached, because every call needs it and making a policy checks all of its fields."""
    return replace(policy, private=policy.private | more)


@lru_cache(maxsize=4096)
def host_name(text: str) -> str:
    """Normalise a host for comparison: lower case, ASCII, an address in its canonical form."""
    try:
        host = httpx2.URL(scheme="https", host=text.strip("[]")).raw_host.decode()
    except (httpx2.InvalidURL, TypeError, ValueError):
        host = ""
    address = parse_address(host)
    if address is not None and "%" not in host:
        return str(address)
    # Do not show the given text: it may be part of a secret.
    if not NAME.fullmatch(host) or NUMBER.fullmatch(host):
        raise Blocked(say("the host name is not valid"))
    return host


def host_of(url: httpx2.URL) -> str:
    return host_name(url.raw_host.decode())


def port_of(url: httpx2.URL) -> int:
    return PORTS.get(url.scheme, 0) if url.port is None else url.port


def _parsed(url: str | httpx2.URL) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError, ValueError):
        raise Blocked(say("the URL is not valid")) from None
    if parsed.userinfo:
        raise Blocked(say("the URL must not contain a user or password"))
    if parsed.scheme not in PORTS:
        raise Blocked(say("the URL must begin with https:// or http://"))
    return parsed


def _pattern(host: str) -> str:
    if host == ANYWHERE:
        return host
    return f"*.{host_name(host[2:])}" if host.startswith("*.") else host_name(host)


def _check_is_set(name: str, values: Iterable[Any]) -> Iterable[Any]:
    if isinstance(values, str):
        raise BadInput(say("policy: {name} must be a set, not a string", name=name))
    return values


def _list(values: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, values)))
