"""`/api/stream` over a socket: who may hear what, and who is let go."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from retoma import Retoma
from retoma.access import Access
from retoma.db import Away
from retoma.engine.query import tail
from retoma.engine.testing import drain
from retoma.web import Bound, broadcast
from tests.engine.aids import eventually
from tests.web.aids import ROOT_KEY, Served, served, stories
from tests.web.sse import Ear, Heard

ADMIN = {"x-api-key": ROOT_KEY}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a poll longer than it takes."""
    monkeypatch.setattr(broadcast, "LOOK", 0.02)
    monkeypatch.setattr(broadcast, "AWAY", 0.02)


@asynccontextmanager
async def house(url: str, **given: Any) -> AsyncIterator[tuple[Served, Retoma]]:
    """A server on a socket, and an app beside it that makes things happen."""
    with served(url, **given) as server:
        async with stories(url) as app:
            yield server, app


def key_of(server: Served, role: str) -> dict[str, Any]:
    """The id and the header of a new key."""
    made = httpx2.post(
        f"{server.origin}/api/keys",
        json={"person": f"{role}-person", "role": role},
        headers=ADMIN,
        timeout=60,
    ).json()
    return {"id": made["id"], "headers": {"x-api-key": made["token"]}}


@asynccontextmanager
async def open_stream(
    server: Served, query: str = "", headers: dict[str, str] | None = None, **how: Any
) -> AsyncIterator[Ear]:
    ear = await Ear.open(f"{server.origin}/api/stream?{query}", headers or ADMIN, **how)
    try:
        yield ear
    finally:
        ear.close()


async def hello(ear: Ear) -> None:
    heard = await ear.next()
    assert heard is not None
    assert "hello" == heard.name


async def jobs(ear: Ear, n: int) -> list[int]:
    """Of the next so many messages, which must all be of jobs; but an admin also hears that the
    server's own runner has come, which may be at any time."""
    found: list[int] = []
    while len(found) < n:
        heard = await ear.next()
        assert heard is not None
        assert heard.name in ("job", "audit")
        if heard.name == "job":
            found.append(heard.data["job"])
    return found


async def test_e21_it_tells_what_happens_with_an_id_and_in_a_form_no_proxy_keeps(database_url):
    # Of one kind: without a filter an admin also hears that the server's own runner has come.
    async with house(database_url) as (server, app), open_stream(server, "kind=count") as ear:
        await hello(ear)
        made = await app.submit("count", 1, actor="Ana")
        heard = await ear.next()

        assert heard is not None
        assert heard.id
        assert {
            *("job", "seq", "epoch", "type", "at", "actor", "details", "kind", "batch")
        } == heard.data.keys()
        assert (made.id, 1, "submitted", "count", "Ana") == tuple(
            heard.data[name] for name in ("job", "seq", "type", "kind", "actor")
        )
        assert "text/event-stream; charset=utf-8" == ear.headers["content-type"]
        assert "no" == ear.headers["x-accel-buffering"]
        assert "no-store" in ear.headers["cache-control"]


async def test_e21_row_25_a_stream_of_a_batch_hears_nothing_of_another_also_in_its_replay(
    database_url,
):
    async with house(database_url) as (server, app):
        mine = await app.submit_many("count", [1, 2])
        theirs = await app.submit_many("count", [3])
        async with open_stream(server, f"batch={mine.id}") as ear:
            await hello(ear)
            await theirs.cancel()
            await app.cancel(1)
            assert [1] == await jobs(ear, 1)
        await app.submit_many("count", [5, 6])
        await app.cancel(2)

        for query, headers in (
            (f"batch={mine.id}", {**ADMIN, "Last-Event-ID": ear.last}),
            (f"batch={mine.id}&last={ear.last}", ADMIN),
        ):
            async with open_stream(server, query, headers) as again:  # type: ignore[arg-type]
                assert [2] == await jobs(again, 1)
        async with open_stream(server, "kind=count&job=5") as one:
            await hello(one)
            await app.cancel(4)
            await app.cancel(5)
            assert [5] == await jobs(one, 1)


async def test_e21_row_25_a_cursor_that_is_none_of_ours_begins_anew(database_url):
    async with house(database_url) as (server, app):
        async with open_stream(server) as ear:
            await hello(ear)
        assert ear.last is not None
        future = re.sub(r"\d+", lambda n: str(int(n[0]) + 10**6), ear.last.partition("/")[2])
        later = f"{ear.last.partition('/')[0]}/{future}"
        wild = ("x", "-1", "1" + "0" * 20, "abc", "0/1:1:", "another/7.1.1:0", "é", "1" * 5_000)
        for cursor in (*wild, later):
            back = {**ADMIN, "Last-Event-ID": cursor}
            async with open_stream(server, "kind=count", headers=back) as ear:
                heard = await ear.next()
                made = await app.submit("count", 1)

                assert heard is not None
                assert "reset" == heard.name
                assert [made.id] == await jobs(ear, 1)


async def test_what_people_do_is_told_to_an_admin_and_a_stack_to_who_may_see_it(database_url):
    async with house(database_url) as (server, app):
        keys = {role: key_of(server, role)["headers"] for role in ("viewer", "operator")}
        async with (
            open_stream(server, headers=keys["viewer"]) as viewer,
            open_stream(server, headers=keys["operator"]) as operator,
            open_stream(server) as admin,
            open_stream(server, "kind=work") as filtered,
        ):
            everybody = {
                "viewer": viewer,
                "operator": operator,
                "admin": admin,
                "filtered": filtered,
            }
            for ear in everybody.values():
                await hello(ear)
            await app.pools.declare("proxies", {"a": 1})
            await app.submit("work", {"breaks": "inside"})
            await drain(app)
            told = {name: await until(ear, 1, "buried") for name, ear in everybody.items()}
            # What this is told after has all been told by then.
            await app.submit("work", {})
            for name, ear in everybody.items():
                told[name] += await until(ear, 2, "submitted")

        assert {"admin"} == {name for name, all_ in told.items() if "audit" in names(all_)}
        assert {"operator", "admin", "filtered"} == {
            name for name, all_ in told.items() if any("stack" in str(each) for each in all_)
        }


async def until(ear: Ear, job: int, type_: str) -> list[Heard]:
    told: list[Heard] = []
    while not told or (told[-1].data.get("job"), told[-1].data.get("type")) != (job, type_):
        heard = await ear.next()
        assert heard is not None
        told.append(heard)
    return told


def names(told: list[Heard]) -> set[str]:
    return {heard.name for heard in told}


# — who is let go —


async def test_a_revoked_key_ends_its_streams(database_url, test_clock):
    async with house(database_url) as (server, app):
        key = key_of(server, "viewer")
        async with (
            open_stream(server, headers=key["headers"]) as theirs,
            open_stream(server) as ours,
        ):
            await hello(theirs)
            await hello(ours)
            httpx2.post(
                f"{server.origin}/api/keys/{key['id']}/revoke", headers=ADMIN, timeout=60
            ).raise_for_status()
            test_clock.jump(15)

            assert ("dropped", {"reason": "not_allowed"}) == await last_of(theirs)
            while (await ours.next()).name != "heartbeat":  # type: ignore[union-attr]
                pass
            await app.submit("count", 1)
            assert [1] == await jobs(ours, 1)
        async with open_stream(server, headers=key["headers"]) as again:
            assert 401 == again.status


async def test_a_session_that_ends_ends_its_streams_and_so_does_a_role_that_changes(
    database_url, test_clock
):
    async with house(database_url) as (server, _):
        cookies = {name: enter(server, name) for name in ("Ana", "Bia")}
        async with (
            open_stream(server, headers=cookies["Ana"]) as ana,
            open_stream(server, headers=cookies["Bia"]) as bia,
        ):
            await hello(ana)
            await hello(bia)
            with httpx2.Client(base_url=server.origin, headers=ADMIN, timeout=60) as admin:
                [session] = [
                    each["id"]
                    for each in admin.get("/api/sessions").json()["items"]
                    if each["person"] == "Ana"
                ]
                admin.delete(f"/api/sessions/{session}").raise_for_status()
                admin.post("/api/people", json={"person": "Bia", "role": "viewer"})
            test_clock.jump(15)

            for ear in (ana, bia):
                assert ("dropped", {"reason": "not_allowed"}) == await last_of(ear)


def enter(server: Served, name: str) -> dict[str, str]:
    """The cookie of an operator who came in by a link."""
    with httpx2.Client(base_url=server.origin, timeout=60) as browser:
        made = browser.post(
            "/api/people", json={"person": name, "role": "operator"}, headers=ADMIN
        )
        link = made.json()["link"]
        browser.post(link, headers={"Origin": server.origin})
        return {"Cookie": f"retoma={browser.cookies['retoma']}"}


async def last_of(ear: Ear) -> tuple[str, Any]:
    """The last message of a stream that ends as it should."""
    heard = None
    while (following := await ear.next()) is not None:
        heard = following
    assert heard is not None
    return heard.name, heard.data


async def test_e21_row_26_a_slow_reader_is_told_and_let_go_and_misses_nothing(
    url_of_one, monkeypatch
):
    monkeypatch.setattr(broadcast, "BEHIND", 100_000)
    monkeypatch.setattr(broadcast, "LAST_WORDS", 60.0)
    async with house(url_of_one) as (server, app):
        everybody = server.site.state.house.broadcaster._listeners
        async with (
            open_stream(server, "kind=count") as quick,
            open_stream(server, "kind=count", slow=True) as slow,
        ):
            await hello(quick)
            await eventually(lambda: count(everybody, 2))
            total = 0
            while all(not each.over.is_set() for each in tuple(everybody)):
                total += len(await jobs_of(app, 2_000))
                assert total < 200_000
                await jobs(quick, 2_000)
            told = await last_of(slow)
        back = {**ADMIN, "Last-Event-ID": slow.last or ""}
        async with open_stream(server, "kind=count", back) as again:
            rest = await jobs(again, 1)
            while rest[-1] < total:
                rest += await jobs(again, 1)

        assert ("dropped", {"reason": "too_slow"}) == told
        assert list(range(rest[0], total + 1)) == rest
        await eventually(lambda: count(everybody, 0))


async def jobs_of(app: Retoma, n: int) -> range:
    await app.submit_many("count", range(n))
    return range(n)


async def count(everybody: set[Any], n: int) -> bool:
    return len(everybody) == n


async def test_who_leaves_is_forgotten_however_they_go(database_url):
    async with house(database_url) as (server, _):
        everybody = server.site.state.house.broadcaster._listeners
        async with open_stream(server) as closed, open_stream(server) as cut:
            await hello(closed)
            await hello(cut)
            assert 2 == len(everybody)
            closed.close()
            cut.cut()

            await eventually(lambda: count(everybody, 0))


# — who is refused —


REFUSED = [
    ("", {"x-none": "1"}, (401, "sign_in")),
    ("", {"x-api-key": "wrong"}, (401, "sign_in")),
    ("batch=0", ADMIN, (422, "bad_input")),
    ("batch=x", ADMIN, (422, "bad_input")),
    ("job=-1", ADMIN, (422, "bad_input")),
    ("kind=", ADMIN, (422, "bad_input")),
    ("kind=a&kind=b", ADMIN, (422, "bad_input")),
    ("surprise=1", ADMIN, (422, "bad_input")),
    ("last=%00", ADMIN, (422, "bad_input")),
    ("api_key=x", ADMIN, (400, "key_in_query")),
    ("", {**ADMIN, "X-Correlation-Id": "é"}, (400, "bad_header")),
    ("", {**ADMIN, "Host": "evil.example"}, (421, "wrong_host")),
]


async def test_what_is_refused_is_a_problem_and_no_stream(url_of_one):
    async with house(url_of_one) as (server, _):
        for query, headers, expected in REFUSED:
            async with open_stream(server, query, headers) as ear:
                told = await ear.problem()

            assert expected == (ear.status, told["code"]), query
        assert 0 == server.site.state.house.broadcaster.listeners


@pytest.mark.parametrize("setting", ["streams", "streams_each"])
async def test_row_26_more_streams_than_the_settings_allow_are_refused(url_of_one, setting):
    async with (
        house(url_of_one, **{setting: 2}) as (server, _),
        open_stream(server) as first,
        open_stream(server) as second,
    ):
        await hello(first)
        await hello(second)
        async with open_stream(server) as third:
            told = await third.problem()

        assert (429, "too_many_requests") == (third.status, told["code"])
        assert "retry-after" in third.headers
        async with open_stream(server, headers=key_of(server, "viewer")["headers"]) as other:
            assert (200 if setting == "streams_each" else 429) == other.status


async def test_a_stream_ends_within_a_second_of_what_it_was_opened_with(
    database_url, monkeypatch
):
    """By a key that is revoked, long before the next heartbeat asks."""
    monkeypatch.setattr(broadcast, "LOOK", 0.25)
    async with house(database_url) as (server, app):
        key = key_of(server, "viewer")
        everybody = server.site.state.house.broadcaster._listeners
        async with (
            open_stream(server, headers=key["headers"]) as ear,
            open_stream(server) as other,
        ):
            await hello(ear)
            await hello(other)
            access = Access(await app.database(), app.clock, app.ids)
            async with asyncio.timeout(broadcast.HEARTBEAT / 2):  # it asks by itself no sooner
                await access.revoke_key(key["id"], "test")
                dropped = await last_of(ear)

            assert ("dropped", {"reason": "not_allowed"}) == dropped
            await eventually(lambda: count(everybody, 1))


async def test_a_database_that_is_away_is_a_problem_and_no_stream(url_of_one, monkeypatch):
    def away(_: Any) -> None:
        raise Away("gone")

    async with house(url_of_one) as (server, _):
        server.site.state.house.retoma.connection._patience = 0
        with monkeypatch.context() as trouble:
            trouble.setattr(tail, "head", away)
            async with open_stream(server) as ear:
                told = await ear.problem()
        async with open_stream(server) as again:
            await hello(again)

    assert (503, "database_away") == (ear.status, told["code"])


@pytest.fixture
def url_of_one(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'work.db'}"


async def test_a_stream_outlives_the_time_an_answer_has(url_of_one):
    """Bound.seconds is for answers that end."""
    with served(url_of_one, bound=Bound(seconds=1.5, per_key=1e6, per_address=1e6)) as server:
        async with stories(url_of_one) as app, open_stream(server) as ear:
            await hello(ear)
            await asyncio.sleep(1.8)
            await app.submit("count", 1)
            assert [1] == await jobs(ear, 1)
