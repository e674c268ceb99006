"""Special-purpose IP addresses that outbound requests must not reach, in every notation.

From IANA's registries of special-purpose addresses, and the metadata addresses of cloud providers.
A fixed table, because Python's own `is_global` changed its answers between patch releases.
"""

from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Range:
    """Addresses of one kind. An operator may allow `private` ones for a host by name."""

    network: IPv4Network | IPv6Network
    what: str
    private: bool = False


def _ranges(what: str, *networks: str, private: bool = False) -> tuple[Range, ...]:
    return tuple(Range(ip_network(network), what, private) for network in networks)


# The first matching range decides, so metadata services stand before the private ranges.
SPECIAL: Final = (
    *_ranges(
        "a metadata service",
        *("169.254.169.254/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
        *("fd00:ec2::/32", "fd20:ce::/32"),
    ),
    *_ranges("loopback", "127.0.0.0/8", "::1/128", private=True),
    *_ranges("private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", private=True),
    *_ranges("private", "fc00::/7", private=True),
    *_ranges("shared by a carrier", "100.64.0.0/10", private=True),
    *_ranges("unspecified", "0.0.0.0/8", "::/128"),
    *_ranges("link-local", "169.254.0.0/16", "fe80::/10"),
    *_ranges("multicast", "224.0.0.0/4", "ff00::/8"),
    *_ranges("documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
    *_ranges("documentation", "2001:db8::/32", "3fff::/20"),
    *_ranges("reserved", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "2001::/23"),
    # They embed an IPv4 address; a translator could lead to our own network.
    *_ranges("IPv4 in IPv6", "::ffff:0:0/96", "::ffff:0:0:0/96", "::/96", "2002::/16"),
    *_ranges("IPv4 in IPv6", "64:ff9b::/96", "64:ff9b:1::/48", "192.88.99.0/24"),
)
GLOBAL: Final = ip_network("2000::/3")  # the only IPv6 range that IANA assigns to public hosts
ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)  # an IPv4 address follows, under any prefix


def parse_address(host: str) -> Address | None:
    """Parse a host that is written as an IP address. None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def blocked_reason(address: Address, *, allowed: bool) -> str | None:
    """Return why connections to this address are blocked; None if they are not. `allowed`: private ranges are permitted."""
    special = next((entry for entry in SPECIAL if address in entry.network), None)
    if special is not None:
        return None if allowed and special.private else special.what
    if isinstance(address, IPv4Address):
        return None
    if address.scope_id is not None or address not in GLOBAL:
        return "reserved"
    return "IPv4 in IPv6" if (int(address) >> 32) & 0xFFFF_FFFF in ISATAP else None
