"""Common calls: who may not begin anything asks for nothing, who leaves takes his texts out, all pay what it cost."""

import asyncio
from decimal import Decimal

import pytest

from retoma.apps.embeddings.batcher import AT_ONCE, Batcher
from retoma.apps.embeddings.providers import Embedded, InputType, Used
from retoma.engine.rules.errors import Transient
from tests.apps.embeddings.aids import Counting


async def may() -> None:
    """Its lease holds."""


async def never() -> None:
    """Its lease is over, and so is its attempt."""
    raise asyncio.CancelledError


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_who_slept_through_his_lease_asks_for_nothing():
    """E3 E5: found by the ledger: what had gathered was sent by a runner that woke after its lease."""
    provider = Counting(gate=asyncio.Event())
    batcher = Batcher(provider)
    late = asyncio.ensure_future(batcher.embed(["tarde"], never))
    mine = asyncio.ensure_future(batcher.embed(["minha"], may))
    await settled()
    assert late.cancelled()
    assert [["minha"]] == provider.calls
    assert provider.gate is not None
    provider.gate.set()
    assert 1 == len((await mine).items)


async def test_who_may_not_begin_yet_waits_and_is_sent_then():
    provider, dawn = Counting(), asyncio.Event()

    async def at_dawn() -> None:
        await dawn.wait()

    batcher = Batcher(provider)
    asleep = asyncio.ensure_future(batcher.embed(["dorme"], at_dawn))
    await settled()
    assert [] == provider.calls
    dawn.set()
    assert 1 == len((await asleep).items)


async def test_who_leaves_takes_his_texts_out_and_the_last_ends_the_call():
    provider = Counting(gate=asyncio.Event())
    batcher = Batcher(provider)
    first = [asyncio.ensure_future(batcher.embed([f"{n}"], may)) for n in range(2)]
    await settled()
    assert [["0", "1"]] == provider.calls
    others = [asyncio.ensure_future(batcher.embed([f"{n}"], may)) for n in (2, 3)]
    await settled()
    gathering = [asyncio.ensure_future(batcher.embed([f"{n}"], may)) for n in (4, 5)]
    await settled()
    assert AT_ONCE == len(provider.calls)
    gathering[0].cancel()
    for each in first:
        each.cancel()
    await settled()
    assert [["0", "1"], ["2", "3"], ["5"]] == provider.calls, "the call nobody wants is over"
    assert provider.gate is not None
    provider.gate.set()
    assert [1, 1, 1] == [len((await each).items) for each in (*others, gathering[1])]


async def test_a_failure_is_everybodys_and_the_next_call_goes_on():
    provider = Counting(fails=[Transient("503")])
    batcher = Batcher(provider)
    both = [asyncio.ensure_future(batcher.embed([f"{n}"], may)) for n in range(2)]
    for each in both:
        with pytest.raises(Transient):
            await each
    assert 1 == len((await batcher.embed(["depois"], may)).items)


async def test_requests_are_never_parted_and_all_pay_together_what_the_call_cost():
    class Paid(Counting):
        async def embed(self, texts, input_type=InputType.DOCUMENT):
            made = await super().embed(texts)
            return Embedded(made.items, Used("m", input_tokens=1001, usd=0.0003))

    provider = Paid(most=10)
    batcher = Batcher(provider)
    lengths = (4, 5, 3, 10, 1)
    asked = [batcher.embed(["palavra"] * n, may) for n in lengths]
    shares = await asyncio.gather(*asked)
    assert [9, 3, 10, 1] == [len(call) for call in provider.calls]
    assert [*lengths] == [len(share.items) for share in shares]
    assert 1001 == sum(share.input_tokens for share in shares[:2])
    assert Decimal("0.0003") == sum((share.usd or 0 for share in shares[:2]), Decimal(0))
