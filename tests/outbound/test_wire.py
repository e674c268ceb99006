"""Connections: as many as agreed, and what it costs to find one does not grow with them."""

import httpcore2
import pytest

from retoma.outbound.resolver import SystemResolver
from retoma.outbound.wire import A_POOL, GuardedNetwork, Wire


@pytest.fixture
def wire() -> Wire:
    network = GuardedNetwork(httpcore2.AnyIOBackend(), SystemResolver(), frozenset())
    return Wire(network, None, 2 * A_POOL + 4)


def test_pools_together_have_as_many_connections_as_agreed(wire):
    for _ in range(2 * A_POOL + 4):
        wire._pick_pool().busy += 1

    assert [A_POOL, A_POOL, 4] == [pool.most for pool in wire._pools]
    assert [pool.most for pool in wire._pools] == [pool.busy for pool in wire._pools]


def test_who_comes_when_all_are_taken_waits_where_fewest_do(wire):
    for _ in range(2 * A_POOL + 4):
        wire._pick_pool().busy += 1

    assert wire._pools[2] is wire._pick_pool()
    assert 3 == len(wire._pools)


def test_the_first_pool_is_filled_first(wire):
    for _ in range(A_POOL + 1):
        wire._pick_pool().busy += 1
    wire._pools[0].busy -= 1

    assert wire._pools[0] is wire._pick_pool()
