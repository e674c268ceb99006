"""Few large bodies are in memory at a time; whoever sends none does not wait for those who do."""

import asyncio
import gc
import json
import threading
import weakref
from hashlib import sha256

import pytest

from retoma.access import Access, Role
from retoma.apps.documents import contents
from retoma.apps.documents.contents import Contents
from retoma.web import Refusal, request_body
from retoma.web.room import Room
from tests.web.aids import World, client, code_of, world

LARGE = {"kind": "count", "payload": "a" * 60_000, "label": "b" * 60_000}


async def test_who_came_first_has_room_first():
    room, order = Room(10), []

    async def work(name: str, size: int) -> None:
        async with room.hold(size):
            order.append(name)
            await asyncio.sleep(0)

    taken = await room.take(4)
    waiting = [asyncio.create_task(work(*each)) for each in (("all", 99), ("one", 1))]
    await asyncio.sleep(0)
    assert [] == order  # "one" would have room, and does not pass "all"
    room.give_back(taken)
    await asyncio.gather(*waiting)

    assert ["all", "one"] == order
    assert 10 == await room.take(10)


async def test_who_leaves_takes_no_room_along():
    room = Room(10)
    taken = await room.take(10)
    first, second = (asyncio.create_task(room.take(10)) for _ in range(2))
    await asyncio.sleep(0)
    room.give_back(taken)
    first.cancel()  # its turn has come, and it does not know yet
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.sleep(0)

    assert 10 == await second


async def test_who_waits_for_too_long_is_told_to_come_back():
    room = Room(10, patience=0.01)
    await room.take(10)
    with pytest.raises(Refusal) as refused:
        await room.take(1)

    assert "too_many_requests" == refused.value.code
    assert "Retry-After" in refused.value.headers


async def test_a_large_body_waits_for_room_and_a_small_one_does_not(database_url):
    async with world(database_url) as house:
        room: Room = house.site.state.house.room
        taken = await room.take(1 << 40)
        large = asyncio.create_task(house.operator.post("/api/jobs", json=LARGE))
        small = await house.operator.post("/api/jobs", json={"kind": "count", "payload": 1})
        assert 201 == small.status_code
        assert not large.done()
        room.give_back(taken)

        assert (422, "bad_input") == code_of(await large)
        assert taken == await room.take(1 << 40)  # all of it was given back


async def test_a_large_body_is_what_it_was_once_it_was_read(database_url):
    async with world(database_url) as house:
        wanted = {"kind": "work", "payload": {"gives": ["é😀" * 30_000] * 2}}
        made = await house.operator.post("/api/jobs", json=wanted)
        seen = await house.viewer.get(f"/api/jobs/{made.json()['id']}")

        assert (201, wanted["payload"]) == (made.status_code, seen.json()["payload"])


async def test_the_same_key_with_another_large_body_is_refused(database_url):
    async with world(database_url) as house:
        key = {"Idempotency-Key": "k1"}
        codes = []
        for letter in "aab":
            body = {"where": {"kind": "count"}, "why": letter * 100}
            padded = f"{' ' * 70_000}{json.dumps(body)}".encode()
            headers = {**key, "Content-Type": "application/json"}
            answer = await house.operator.post(
                "/api/dead/discard", content=padded, headers=headers
            )
            codes.append(answer.status_code)

        assert [202, 202, 409] == codes


class Value(dict[str, object]):
    """A body that can be watched."""


async def test_what_was_refused_is_not_in_memory_any_more(database_url, monkeypatch):
    seen: list[weakref.ref[Value]] = []

    def read(*_: object) -> Value:
        value = Value(kind="count", nobody="knows this")
        seen.append(weakref.ref(value))
        return value

    monkeypatch.setattr(request_body, "read_json", read)
    async with world(database_url) as house:
        gc.collect()
        gc.disable()
        try:
            answer = await house.operator.post("/api/jobs", json=LARGE)
            assert (422, "bad_input") == code_of(answer)
            assert [None] == [each() for each in seen]
        finally:
            gc.enable()


# — others do not wait —


async def test_nobody_waits_for_the_writes_of_others_to_be_known(database_url):
    async with world(database_url) as house:
        access = Access(await house.app.database(), house.app.clock, house.app.ids)
        key = await access.create_key("Ada", Role.VIEWER, actor="test")
        ada = client(house.site, key.token)
        async with _a_long_write(house):
            answer = await ada.get("/api/me")
            assert "Ada" == answer.json()["name"]


async def test_files_that_wait_to_be_kept_are_not_in_memory(
    database_url, tmp_path, monkeypatch
):
    async with world(database_url, applications="documents") as house:
        read: list[int] = []
        real = contents._read_pieces

        def counted(*given: object) -> list[bytes]:
            read.append(1)
            return real(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(contents, "_read_pieces", counted)
        file, bytes_ = tmp_path / "file", b"texto " * 50_000
        file.write_bytes(bytes_)
        sha = sha256(bytes_).hexdigest()
        async with _a_long_write(house):
            keeping = asyncio.create_task(Contents(house.app).keep(file, sha, len(bytes_)))
            await asyncio.sleep(0)
            if database_url.startswith("sqlite"):  # one writes at a time there
                assert [] == read
        await keeping

        assert [1] == read
        assert bytes_ == await Contents(house.app).open(sha)


class _a_long_write:  # noqa: N801 — a block
    """Somebody writes for as long as the block lasts."""

    def __init__(self, house: World) -> None:
        self._house, self._over, self._begun = house, threading.Event(), asyncio.Event()

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()

        def write(_: object) -> None:
            loop.call_soon_threadsafe(self._begun.set)
            self._over.wait(60)

        self._task = asyncio.create_task(self._house.app.write(write))
        await self._begun.wait()

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        await self._task
