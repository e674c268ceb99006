"""No special address is connected to, however it is written or wrapped (PROMISES 5.4)."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma.outbound import Blocked, Policy
from retoma.outbound.addresses import SPECIAL, blocked_reason

V4 = [each for each in SPECIAL if each.network.version == 4]
V6 = [each for each in SPECIAL if each.network.version == 6]
ANYWHERE = Policy(purpose="any", hosts={"*"}, schemes={"http", "https"})


def within(ranges):
    return st.sampled_from(ranges).flatmap(
        lambda each: st.integers(
            int(each.network.network_address), int(each.network.broadcast_address)
        ).map(lambda number: (each, number))
    )


EMBEDDINGS = {
    "mapped": lambda v4: 0xFFFF << 32 | v4,
    "translated": lambda v4: 0xFFFF << 48 | v4,
    "compatible": lambda v4: v4,
    "nat64": lambda v4: 0x64FF9B << 96 | v4,
    "local nat64": lambda v4: 0x64FF9B0001 << 80 | v4,
    "6to4": lambda v4: 0x2002 << 112 | v4 << 80 | 1,
    "teredo server": lambda v4: 0x20010000 << 96 | v4 << 64 | 0xFFFF,
    "teredo client": lambda v4: 0x20010000 << 96 | 0x08080808 << 64 | (v4 ^ 0xFFFFFFFF),
    "isatap": lambda v4: 0x2606_4700 << 96 | 0x5EFE << 32 | v4,
    "isatap, global": lambda v4: 0x2606_4700 << 96 | 0x0200_5EFE << 32 | v4,
}


@given(within(V4))
def test_a_special_address_is_refused_as_it_is(special):
    _, number = special

    assert blocked_reason(IPv4Address(number), allowed=False) is not None
    with pytest.raises(Blocked):
        ANYWHERE.check(f"https://{IPv4Address(number)}/")


@pytest.mark.parametrize("wrap", EMBEDDINGS.values(), ids=EMBEDDINGS)
@given(special=within(V4))
def test_a_special_address_is_refused_in_every_embedding_even_for_an_allowed_host(
    wrap, special
):
    address = IPv6Address(wrap(special[1]))

    # A compatible ::0.0.0.1 is loopback itself, which an operator may allow.
    assert address == IPv6Address("::1") or blocked_reason(address, allowed=True) is not None
    with pytest.raises(Blocked):
        ANYWHERE.check(f"http://[{address}]/")


@given(within(V6))
def test_a_special_address_of_ipv6_is_refused(special):
    _, number = special

    assert blocked_reason(IPv6Address(number), allowed=False) is not None


@given(within(V4))
def test_odd_spellings_of_a_special_address_are_refused(special):
    number = special[1]
    parts = list(number.to_bytes(4, "big"))
    spellings = [
        *(str(number), hex(number), f"0{number:o}", f"{number:#x}."),
        ".".join(f"{part:#x}" for part in parts),
        ".".join(f"0{part:o}" for part in parts),
        ".".join(f"{part:03}" for part in parts),
        f"{parts[0]}.{number & 0xFFFFFF}",
        f"{parts[0]}.{parts[1]}.{number & 0xFFFF}",
        f"{IPv4Address(number)}.",
        str(IPv4Address(number)).replace(".", "%2e"),
        str(IPv4Address(number)).replace(".", "\u3002"),
        "".join(f"%{ord(character):02x}" for character in str(IPv4Address(number))),
        "".join(chr(ord(c) + 0xFEE0) for c in str(IPv4Address(number))),  # full width
    ]

    for spelling in spellings:
        with pytest.raises(Blocked):
            ANYWHERE.check(f"http://{spelling}/")


@given(within([each for each in SPECIAL if each.private]))
def test_only_private_addresses_may_be_allowed_and_never_a_metadata_service(special):
    each, number = special
    address = (IPv4Address if each.network.version == 4 else IPv6Address)(number)
    metadata = next(found for found in SPECIAL if address in found.network) is not each

    assert (blocked_reason(address, allowed=True) is None) is not metadata


@pytest.mark.parametrize(
    "text",
    [
        *("169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"),
        *(
            "fe80::1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "0.1.2.3",
            "ff02::1",
            "64:ff9b::808:808",
        ),
    ],
)
def test_what_no_operator_may_allow(text):
    assert blocked_reason(ip_address(text), allowed=True) is not None


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "93.184.216.34", "100.63.255.255", "172.32.0.1", "2606:4700::6810:84e5"]
)
def test_the_rest_of_the_world_is_open(text):
    assert blocked_reason(ip_address(text), allowed=False) is None


def test_an_address_that_belongs_to_one_wire_only_is_refused():
    assert blocked_reason(ip_address("2606:4700::1%eth0"), allowed=False) is not None
