"""A list that is saved to a file: however long it is and however slowly it is read, it takes no memory."""

import asyncio
import csv
import io
import json
import zipfile
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from retoma.web.files import PIECE, XLSX, StoredFile, listed_file
from retoma.web.house import House
from tests.web.aids import world

PAGES = 40


class Line(BaseModel):
    """One of a list."""

    name: str
    price: float


async def pages(n: int = PAGES) -> AsyncIterator[Sequence[Line]]:
    for k in range(n):
        yield [Line(name=f"{k} {each:04} ção " + "x" * 40, price=1.5) for each in range(100)]


async def sent(answer: Any) -> tuple[dict[str, str], list[bytes]]:
    """Its headers, and the pieces that it comes in."""
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    async def receive() -> Any:
        raise AssertionError

    await answer({"type": "http"}, receive, send)
    headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    assert [True] * (len(messages) - 2) + [False] == [
        each["more_body"] for each in messages[1:]
    ]
    return headers, [each["body"] for each in messages[1:]]


def house_at(there: Any) -> House:
    house: House = there.site.state.house
    return house


@pytest.mark.parametrize(
    ("as_", "media", "price"),
    [
        ("csv", "text/csv", "1.5"),
        ("excel", "text/csv", "1,5"),
        ("json", "application/json", 1.5),
        ("xlsx", XLSX, None),
    ],
)
async def test_a_list_comes_in_small_pieces_and_is_whole(database_url, as_, media, price):
    async with world(database_url) as there:
        answer = await listed_file(house_at(there), as_, "lines", ("name", "price"), pages())
        assert isinstance(answer, StoredFile)
        headers, pieces = await sent(answer)

        content = b"".join(pieces)
        assert str(len(content)) == headers["content-length"]
        assert media == headers["content-type"].partition(";")[0]
        assert len(pieces) == -(-len(content) // PIECE)
        assert PIECE >= max(map(len, pieces))
        assert answer._file.closed
        if as_ == "xlsx":
            with zipfile.ZipFile(io.BytesIO(content)) as book:
                assert 1 + 100 * PAGES == book.read("xl/worksheets/sheet1.xml").count(b"<row>")
            return
        found = told(as_, content)
        assert 100 * PAGES == len(found)
        assert {"name": "39 0099 ção " + "x" * 40, "price": price} == found[-1]


def told(as_: str, content: bytes) -> list[Any]:
    if as_ == "json":
        lines: list[Any] = json.loads(content)
        return lines
    text = io.StringIO(content.decode("utf-8-sig"))
    return list(csv.DictReader(text, delimiter=";" if as_ == "excel" else ","))


@pytest.mark.parametrize(("as_", "expected"), [("csv", b"name\r\n"), ("json", b"[]")])
async def test_an_empty_list_is_one_too(database_url, as_, expected):
    async with world(database_url) as there:
        answer = await listed_file(house_at(there), as_, "lines", ("name",), pages(0))

        assert expected == b"".join((await sent(answer))[1])


async def test_two_lists_are_made_at_a_time_and_the_others_wait(database_url):
    async with world(database_url) as there:
        begun: list[int] = []
        both, go_on = asyncio.Event(), asyncio.Event()

        async def held(n: int) -> AsyncIterator[Sequence[Line]]:
            begun.append(n)
            if len(begun) == 2:
                both.set()
            await go_on.wait()
            yield [Line(name=str(n), price=0)]

        making = [
            asyncio.create_task(
                listed_file(house_at(there), "csv", "lines", ("name",), held(n))
            )
            for n in range(5)
        ]
        await both.wait()
        # Whoever asks for something else does not wait.
        small = await there.viewer.get("/api/jobs")
        waiting = list(begun)
        go_on.set()
        answers = await asyncio.gather(*making)

        assert 200 == small.status_code
        assert [0, 1] == sorted(waiting)
        assert [b"name\r\n%d\r\n" % n for n in range(5)] == [
            b"".join((await sent(each))[1]) for each in answers
        ]


async def test_a_list_that_breaks_off_gives_its_room_back(database_url):
    async with world(database_url) as there:

        async def broken() -> AsyncIterator[Sequence[Line]]:
            yield [Line(name="a", price=0)]
            raise ConnectionError

        for _ in range(5):
            with pytest.raises(ConnectionError):
                await listed_file(house_at(there), "csv", "lines", ("name",), broken())
        answer = await listed_file(house_at(there), "csv", "lines", ("name",), pages(1))
        lines = b"".join((await sent(answer))[1]).splitlines()
        assert 1 + 100 == len(lines)
