"""An audit bundle has everything, shows no secret, and not one byte of it can be another."""

import base64
import json
from pathlib import Path

import pytest

from retoma import Context, Permanent, Retoma, bundle
from retoma.engine.ports import Ids
from retoma.engine.query import Subject
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.secret import Secret
from retoma.vault import EnvKeys, Signer, Vault, signer_with

KEY = base64.b64encode(b"k" * 32).decode()
OTHER = base64.b64encode(b"o" * 32).decode()
WORD = "open-sesame-4711"


def signer(key: str = KEY, purpose: str = bundle.PURPOSE) -> Signer:
    return signer_with(EnvKeys(Secret(key)), purpose)


async def look_up(product: str) -> dict[str, str]:
    return {"product": product, "token": WORD}


async def quote(ctx: Context, product: str) -> str:
    Secret(WORD)  # known from now on
    await ctx.step("look up", look_up, product)
    ctx.cost(provider="shop", usd="0.25")
    await ctx.attach("page.html", b"<h1>sold out</h1>" * 50)
    if product == "lamp":
        raise Permanent("sold out", code="SOLD_OUT")
    return product


async def written(url: str, folder: Path) -> list[bundle.Bundle]:
    """A batch of two, one of them dead, retried by a person; a bundle of it and one of a job."""
    async with Retoma(url) as app:
        app.job(quote)
        batch = await app.submit_many("quote", ["lamp", "table"], name="Monday")
        await app.run(until_idle=True)
        await batch.retry_failed(actor="ana")
        await app.run(until_idle=True)
        database = await app.database()
        return [
            await bundle.write(database, subject, folder / name, signer(), "UTC")
            for subject, name in (
                (Subject(batch=batch.id), "batch.jsonl"),
                (Subject(job=2), "job.jsonl"),
            )
        ]


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_all_that_is_known_is_in_it_and_no_secret(database_url, tmp_path):
    made, _ = await written(database_url, tmp_path)

    assert made == bundle.verify(tmp_path / "batch.jsonl", signer())
    told = lines(tmp_path / "batch.jsonl")
    types = [each["type"] for each in told]
    assert ["bundle", "batch"] == types[:2]
    assert "signature" == types[-1]
    assert (2, True) == (
        types.count("job"),
        {"event", "step", "evidence", "cost", "audit"} <= set(types),
    )
    [kept] = [e["is"] for e in told if e["type"] == "step" and e["job"] == 2]
    assert {"product": "table", "token": "***"} == kept["value"]  # type: ignore[index]
    assert WORD not in (tmp_path / "batch.jsonl").read_text()
    assert [("ana", "batch.retried")] == [
        (e["is"]["actor"], e["is"]["verb"])  # type: ignore[index]
        for e in told
        if e["type"] == "audit" and e["is"]["actor"] == "ana"  # type: ignore[index]
    ]
    only = lines(tmp_path / "job.jsonl")
    assert {2, None} == {each.get("job") for each in only}


async def test_one_byte_that_is_another_is_found_wherever_it_is(database_url, tmp_path):
    await written(database_url, tmp_path)
    good = (tmp_path / "job.jsonl").read_bytes()
    bad = tmp_path / "bad.jsonl"

    for place in range(0, len(good), 7):
        bad.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(BadInput):
            bundle.verify(bad, signer())
    whole = good.splitlines(keepends=True)
    for spoilt in (
        whole[:-1],  # no signature
        [*whole[:3], *whole[4:]],  # a line less
        [*whole, whole[1]],  # something behind the signature
        [whole[0], whole[2], whole[1], *whole[3:]],  # in another order
        [b" ".join(whole)],
        [],
    ):
        bad.write_bytes(b"".join(spoilt))
        with pytest.raises(BadInput):
            bundle.verify(bad, signer())


async def test_only_its_key_and_only_for_this_purpose(database_url, tmp_path):
    await written(database_url, tmp_path)
    file = tmp_path / "job.jsonl"

    with pytest.raises(BadInput, match="copy that key here"):
        bundle.verify(file, signer(OTHER))
    with pytest.raises(BadInput, match="changed after signing"):
        bundle.verify(file, signer(purpose="something else"))
    turned = bundle.verify(file, signer(f"{OTHER},{KEY}"))  # the key behind still verifies
    assert {"job": 2} == turned.of


async def test_nothing_is_written_over_and_nothing_of_what_is_not_there(database_url, tmp_path):
    await written(database_url, tmp_path)
    async with Retoma(database_url) as app:
        database = await app.database()
        vault = Vault(database, Ids(), key=Secret(KEY))
        hand = await vault.signer(bundle.PURPOSE)
        with pytest.raises(IllegalMove, match="exists already"):
            await bundle.write(database, Subject(job=1), tmp_path / "job.jsonl", hand, "UTC")
        with pytest.raises(NotFound):
            await bundle.write(database, Subject(job=99), tmp_path / "no.jsonl", hand, "UTC")
        with pytest.raises(NotFound):
            await bundle.write(database, Subject(batch=99), tmp_path / "no.jsonl", hand, "UTC")

    assert {"batch.jsonl", "job.jsonl"} == {path.name for path in tmp_path.glob("*.jsonl*")}
    assert not list(tmp_path.glob(".*jsonl*"))
