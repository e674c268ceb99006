"""However much comes, and however slowly: no more than agreed (Show 5, §6 row 33)."""

import asyncio
import gzip
import tracemalloc
import zlib
from dataclasses import replace

import pytest

from retoma import Permanent, Transient, Unsure
from retoma.engine.isolation.charset import known_charset
from retoma.outbound import Answer, Outbound, Policy
from retoma.outbound.unpack import Body, TooLarge, Unreadable
from tests.outbound.fakes import answer, endless, serving

MIB = 1024 * 1024
HEAD = b"HTTP/1.1 200 OK\r\n"


def policy_for(server, **rules):
    rules = {"deadline": 20.0, "most_bytes": 100_000, "most_unpacked": 200_000, **rules}
    return Policy.toward("x", server.url, private=True, **rules)


async def fetched(says, **rules):
    async with serving(says) as server, Outbound() as out:
        return await out.get(policy_for(server, **rules), server.url)


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(size // MIB)) + packer.flush()


BOMB = bomb(64 * MIB)


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(answer(200, bytes(100_001)), id="said to be too long"),
        pytest.param(
            lambda _: endless(HEAD + b"content-length: 99999999999\r\n\r\n", b""), id="a lie"
        ),
        pytest.param(lambda _: endless(HEAD + b"\r\n", bytes(1000)), id="without an end"),
        pytest.param(
            lambda _: endless(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"3e8\r\n" + bytes(1000) + b"\r\n"),
            id="chunks without an end",
        ),
        pytest.param(answer(200, BOMB, content_encoding="gzip"), id="a bomb"),
        pytest.param(answer(200, gzip.compress(bytes(200_001)), content_encoding="gzip"), id="one byte"),
    ],
)  # fmt: skip
async def test_a_body_that_is_too_large_is_left_where_the_cap_is(says):
    with pytest.raises(Permanent, match="larger than the limit") as failed:
        await fetched(says)

    assert "too_large" == failed.value.code


async def test_what_is_sent_has_a_cap_of_its_own():
    """Chunks that unpack to nothing for ever: empty members of gzip, one after the other."""
    nothing = gzip.compress(b"") * 100
    chunk = f"{len(nothing):x}\r\n".encode() + nothing + b"\r\n"
    head = HEAD + b"transfer-encoding: chunked\r\ncontent-encoding: gzip\r\n\r\n"

    with pytest.raises(Permanent, match="larger than the limit"):
        await fetched(lambda _: endless(head, chunk))


async def test_a_body_of_just_the_cap_is_taken():
    assert bytes(100_000) == (await fetched(answer(200, bytes(100_000)))).body
    packed = answer(200, gzip.compress(bytes(200_000)), content_encoding="gzip")
    assert bytes(200_000) == (await fetched(packed)).body


def test_a_bomb_is_stopped_while_it_unpacks():
    body = Body("gzip", most_bytes=MIB, most_unpacked=2 * MIB)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            body.feed(BOMB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(BOMB) < 100_000
    assert peak < 6 * MIB


@pytest.mark.parametrize("size", [1, 2, 7, 4096])
def test_a_body_is_the_same_in_whatever_pieces_it_comes(size):
    whole = b"".join(f"{n} ".encode() for n in range(5_000))
    packed = gzip.compress(whole[:100]) + gzip.compress(whole[100:])
    body = Body("GZIP", most_bytes=MIB, most_unpacked=MIB)

    for at in range(0, len(packed), size):
        body.feed(packed[at : at + size])

    assert whole == body.finish()


def test_what_is_cut_short_is_not_taken_for_the_whole():
    for cut in range(1, 24):
        body = Body("gzip", most_bytes=MIB, most_unpacked=MIB)
        body.feed(gzip.compress(b"short")[:cut])
        with pytest.raises(Unreadable):
            body.finish()


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(answer(200, b"not packed", content_encoding="gzip"), id="not packed"),
        pytest.param(answer(200, gzip.compress(b"x")[:-1], content_encoding="gzip"), id="cut"),
        pytest.param(answer(200, gzip.compress(b"x") + b"y", content_encoding="gzip"), id="more"),
        # Nobody asked for these, so nobody has to trust another program that unpacks them.
        pytest.param(answer(200, zlib.compress(bytes(MIB)), content_encoding="deflate"), id="deflate"),
        pytest.param(answer(200, b"\x1b\x00", content_encoding="br"), id="brotli"),
        pytest.param(answer(200, b"\x28\xb5", content_encoding="zstd"), id="zstd"),
        pytest.param(answer(200, BOMB, content_encoding="gzip, gzip"), id="twice"),
    ],
)  # fmt: skip
async def test_what_cannot_be_unpacked_is_a_bad_answer(says):
    with pytest.raises(Transient, match="unpacked") as failed:
        await fetched(says)

    assert "bad_answer" == failed.value.code


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(lambda _: endless(HEAD, b"x-more: and more\r\n"), id="headers without an end"),
        pytest.param(lambda _: endless(HEAD + b"x: ", bytes(1000)), id="a header without an end"),
        pytest.param(HEAD + b"x: \x00\r\n\r\n", id="NUL"),
        pytest.param(HEAD + b"x: a\rb: c\r\ncontent-length: 0\r\n\r\n", id="a bare return"),
        pytest.param(HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\nok", id="two lengths"),
        pytest.param(HEAD + b"content-length: -1\r\n\r\nok", id="a negative length"),
        pytest.param(HEAD + b"transfer-encoding: chunked\r\n\r\nxyz\r\n", id="a chunk of xyz"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", id="no HTTP at all"),
        pytest.param(b"HTTP/1.1 999999 OK\r\n\r\n", id="a status of six digits"),
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_http_is_a_bad_answer(says):
    with pytest.raises(Transient, match="not valid HTTP") as failed:
        await fetched(says)

    assert "bad_answer" == failed.value.code


async def short():
    yield HEAD + b"content-length: 10\r\n\r\nok"


async def nothing():
    yield b""


@pytest.mark.parametrize("says", [lambda _: short(), lambda _: nothing()], ids=["half", "none"])
async def test_an_answer_that_breaks_off_is_no_answer_and_a_deed_may_be_done(says):
    with pytest.raises(Transient):
        await fetched(says)
    async with serving(says) as server, Outbound() as out:
        with pytest.raises(Unsure, match="may have happened") as lost:
            await out.post(policy_for(server), server.url, json={})

    assert "unsure" == lost.value.code


async def test_what_follows_a_body_is_not_part_of_it():
    got = await fetched(HEAD + b"content-length: 2\r\n\r\nok, and more of it")

    assert b"ok" == got.body


@pytest.mark.parametrize(
    "says",
    [
        pytest.param(lambda _: endless(b"", b""), id="silence"),
        pytest.param(lambda _: endless(HEAD, b"x", 0.05), id="a header, letter by letter"),
        pytest.param(lambda _: endless(HEAD + b"\r\n", b"x", 0.05), id="a body, letter by letter"),
        pytest.param(lambda _: endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="only ever go on"),
    ],
)  # fmt: skip
async def test_every_call_has_an_end_however_slowly_it_is_answered(says):
    """A slow loris keeps every single wait short: the deadline is for all of them together."""
    began = asyncio.get_running_loop().time()

    with pytest.raises(Transient, match="the deadline passed") as late:
        await fetched(says, deadline=0.5)

    assert "timeout" == late.value.code
    assert asyncio.get_running_loop().time() - began < 15


async def test_a_silence_within_a_call_has_an_end_too():
    with pytest.raises(Transient, match="the answer timed out"):
        await fetched(lambda _: endless(HEAD, b""), read=0.1)


async def test_a_deed_whose_answer_is_too_large_may_be_done():
    async with serving(answer(200, bytes(100_001))) as server, Outbound() as out:
        with pytest.raises(Unsure) as failed:
            await out.post(policy_for(server), server.url)

    assert "too_large" == failed.value.code


async def test_only_the_types_a_purpose_takes_are_taken():
    says = answer(200, b"<html>", content_type="text/html; charset=utf-8")

    assert "<html>" == (await fetched(says, types={"text/html"})).text()
    with pytest.raises(Transient, match="content type of the answer is not allowed"):
        await fetched(says, types={"application/json"})


@pytest.mark.parametrize("body", [b"{", b"", b"NaN", b"[" * 100_000, b"\xff\xfe\x00"])
async def test_what_is_no_json_is_a_bad_answer(body):
    got = await fetched(answer(200, body), most_bytes=MIB)

    with pytest.raises(Transient, match="not JSON"):
        await got.json()


@pytest.mark.parametrize(
    ("kind", "text"),
    [("text/plain; charset=latin-1", "ü"), ("text/plain; charset=nonsense", "\ufffd"), ("", "\ufffd")],
)  # fmt: skip
async def test_a_text_is_read_as_it_says_or_as_well_as_may_be(kind, text):
    assert text == (await fetched(answer(200, "ü".encode("latin-1"), content_type=kind))).text()


def test_a_page_may_not_say_by_what_it_is_decoded():
    """Python knows charsets that take the square of a text, or raise: a page names one of a few."""
    page = Answer(
        status=200,
        headers={"content-type": "text/html; charset=punycode"},
        body=b"-" + b"a" * 500_000,  # once it took 39 s
        url="",
        where="",
    )

    assert "-" + "a" * 500_000 == page.text()
    for named in (
        "idna",
        "undefined",
        "unicode_escape",
        "utf-7",
        "zip",
        "*=idna''utf-8",
        "\0",
        "",
    ):
        said = replace(
            page, headers={"content-type": f"text/html; charset={named}"}, body=b"\xfcx"
        )
        assert "\ufffdx" == said.text()


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ("windows-1252", "€"),
        ('"CP1252"', "€"),
        ("iso-8859-1", "ü"),
        ("utf-16le", "€"),
        (" UTF-8 ", "€"),
    ],
)
def test_a_page_is_decoded_by_what_it_names(named, text):
    known = known_charset(named.strip('"'))
    head = {"content-type": f"text/html; a=b; Charset={named}; c=d"}

    page = Answer(status=200, headers=head, body=text.encode(known), url="", where="")

    assert text == page.text()


async def test_a_head_has_no_body_however_long_it_says_it_is():
    says = HEAD + b"content-length: 99999999\r\ncontent-encoding: gzip\r\n\r\n"
    async with serving(says) as server, Outbound() as out:
        got = await out.request(policy_for(server), "HEAD", server.url)

    assert (200, b"", "99999999") == (got.status, got.body, got.headers["content-length"])
