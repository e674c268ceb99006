"""PROMISES §6: whatever is wrong with a request, the answer says what, in few words, and nothing has changed."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import psycopg
import pytest
from psycopg import sql

from retoma.engine.rules.states import State
from retoma.web import Bound, Refusal
from retoma.web.body import Shape, read_json
from tests.chaos import disk
from tests.engine.aids import change
from tests.web.aids import ROOT_KEY, client, code_of, served, world

SUBMIT = {"kind": "count", "payload": 1}
MANY = {"kind": "count", "payloads": [1, 2]}
AS_JSON = {"Content-Type": "application/json"}


# — row 1: who is it —


async def test_row_1_every_bad_key_is_answered_alike(database_url):
    async with world(database_url) as house:
        made = (
            await house.admin.post("/api/keys", json={"person": "Eve", "role": "viewer"})
        ).json()
        await house.admin.post(f"/api/keys/{made['id']}/revoke")
        unknown = "retoma_" + "0" * 16 + "_" + "x" * 43

        answers = [
            await client(house.site).get("/api/jobs", headers=headers)
            for headers in (
                {},
                {"Authorization": "Bearer"},
                {"Authorization": "Basic abc"},
                {"x-api-key": "no key at all"},
                {"x-api-key": unknown},
                {"Authorization": f"Bearer {made['token']}"},
                {"Cookie": "retoma=nonsense"},
            )
        ]

        assert {(401, "sign_in")} == {code_of(each) for each in answers}
        assert {'Bearer realm="retoma"'} == {
            each.headers["www-authenticate"] for each in answers
        }
        bodies = [{**each.json(), "trace_id": ""} for each in answers]
        assert all(each == bodies[0] for each in bodies)


async def test_row_1_an_expired_key_opens_nothing(database_url, test_clock):
    async with world(database_url) as house:
        test_clock.jump(0)
        wanted = {"person": "Eve", "role": "viewer", "expires": "1h"}
        token = (await house.admin.post("/api/keys", json=wanted)).json()["token"]
        eve = client(house.site, token)
        assert 200 == (await eve.get("/api/jobs")).status_code

        test_clock.jump(3601)

        assert (401, "sign_in") == code_of(await eve.get("/api/jobs"))


async def test_row_1_nobody_learns_what_is_wrong_with_a_body_before_they_are_let_in(
    database_url,
):
    async with world(database_url) as house:
        answer = await house.nobody.post("/api/jobs", json={"nonsense": 1})

        assert (401, "sign_in") == code_of(answer)


# — row 2: may they —


FORBIDDEN = (
    ("POST", "/api/jobs", SUBMIT),
    ("POST", "/api/jobs/1/cancel", None),
    ("POST", "/api/jobs/1/retry", None),
    ("POST", "/api/dead/discard", {"ids": [1]}),
    ("POST", "/api/batches/1/cancel", None),
    ("GET", "/api/keys", None),
)


async def test_row_2_a_viewer_changes_nothing_and_the_try_is_written_down(database_url):
    async with world(database_url) as house:
        await house.app.submit("count", 1)

        for method, path, body in FORBIDDEN:
            answer = await house.viewer.request(method, path, json=body)
            assert (403, "not_allowed") == code_of(answer), path

        assert {State.WAITING: 1} == await house.app.insights.counts()
        told = (await house.admin.get("/api/events?verb=authz_denied")).json()["items"]
        assert {"Vera"} == {each["actor"] for each in told}
        assert "GET /api/keys" == told[0]["subject"]
        assert len(FORBIDDEN) == len(told)


async def test_row_2_an_operator_is_no_admin(database_url):
    async with world(database_url) as house:
        for method, path in (
            ("GET", "/api/keys"),
            ("GET", "/api/people"),
            ("GET", "/api/sessions"),
        ):
            assert (403, "not_allowed") == code_of(await house.operator.request(method, path))
        limit = await house.operator.put("/api/limits", json={"key": "site:a", "cap": 1})
        assert (403, "not_allowed") == code_of(limit)


# — row 4: keys in addresses —


IN_ADDRESSES = (
    f"api_key={ROOT_KEY}",
    f"X-API-Key={ROOT_KEY}",
    f"access_token={ROOT_KEY}",
    "q=retoma_0123456789abcdef_" + "A" * 43,
)


async def test_row_4_a_key_in_an_address_is_refused_and_not_logged(database_url, capsys):
    async with world(database_url) as house:
        for query in IN_ADDRESSES:
            answer = await house.admin.get(f"/api/jobs?{query}")

            assert (400, "key_in_query") == code_of(answer)
            said = capsys.readouterr()
            assert "CANARY" not in said.out + said.err + answer.text
            assert "A" * 43 not in said.out + said.err + answer.text


# — row 5: how large, how slow —


async def test_row_5_a_body_of_one_byte_too_many_is_refused(database_url):
    async with world(database_url) as house:
        text = json.dumps(SUBMIT).encode()
        most = house.site.state.house.bound.body
        fits, too_large = (text + b" " * (most + n - len(text)) for n in (0, 1))
        headers = AS_JSON

        assert (
            201
            == (
                await house.operator.post("/api/jobs", content=fits, headers=headers)
            ).status_code
        )
        answer = await house.operator.post("/api/jobs", content=too_large, headers=headers)

        assert (413, "too_large") == code_of(answer)
        assert 1 == len(await house.app.jobs())


async def test_row_5_a_body_without_a_length_is_counted_as_it_comes(database_url):
    async with world(database_url) as house:
        sent = 0

        async def endless():
            nonlocal sent
            while True:
                sent += 1
                yield b" " * 65_536

        answer = await house.operator.post("/api/jobs", content=endless(), headers=AS_JSON)

        assert (413, "too_large") == code_of(answer)


async def test_row_5_a_length_that_is_none_or_too_much_is_refused(database_url):
    async with world(database_url) as house:
        for length in ("-1", "x", "9" * 400, "1048577"):
            answer = await house.operator.post(
                "/api/jobs", content=b"{}", headers={"Content-Length": length}
            )
            assert (413, "too_large") == code_of(answer), length


def test_row_5_who_sends_a_byte_now_and_then_is_not_waited_for(database_url):
    """A real socket: one byte of many, then nothing more."""

    async def drip(origin: str) -> bytes:
        host, port = origin.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = (
            f"POST /api/jobs HTTP/1.1\r\nHost: {host}:{port}\r\nx-api-key: {ROOT_KEY}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        writer.write(head.encode())
        try:
            return await reader.read()
        finally:
            writer.close()

    with served(database_url, bound=Bound(seconds=0.3)) as server:
        answer = asyncio.run(drip(server.origin))

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code": "too_slow_request"' in answer


async def test_an_answer_that_takes_too_long_is_given_up(database_url):
    """Somebody holds the writer; whoever waits for it is told so, within its time."""
    async with world(database_url, bound=Bound(seconds=0.3, per_key=1e6)) as house:
        database = await house.app.database()
        gate = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hold(tx):
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()

        holding = asyncio.create_task(database.write(hold, verb="test"))
        answer = await house.operator.post("/api/jobs", json=SUBMIT)
        gate.set()
        await holding

        assert (503, "too_slow") == code_of(answer)
        assert "retry-after" in answer.headers


# — row 6: in which form —


MEDIA = (
    None,
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-16",
    "application/xml",
    "json",
    "",
)


async def test_row_6_only_json_in_utf_8_is_read(database_url):
    async with world(database_url) as house:
        raw = json.dumps(SUBMIT).encode()
        for media in MEDIA:
            headers = {} if media is None else {"Content-Type": media}
            answer = await house.operator.post("/api/jobs", content=raw, headers=headers)
            assert (415, "bad_media_type") == code_of(answer), media
        assert [] == await house.app.jobs()

        for media in ("application/json", "application/json; charset=UTF-8"):
            answer = await house.operator.post(
                "/api/jobs", content=raw, headers={"Content-Type": media}
            )
            assert 201 == answer.status_code


# — rows 7 and 8: what is inside —


def deep(levels: int) -> bytes:
    inside = b"[" * levels + b"]" * levels
    return b'{"kind": "work", "payload": ' + inside + b"}"


NO_JSON = (
    b"{",
    b"nul",
    b'{"kind": "count", "kind": "count", "payload": 1}',
    b'{"kind": "count", "payload": NaN}',
    b'{"kind": "count", "payload": -Infinity}',
    b'{"kind": "count", "payload": 1e400}',
    b'{"kind": "count", "payload": ' + b"9" * 5000 + b"}",
    deep(32),
    deep(200_000),
    b"[" * 500_000,
    b'{"kind": "count", "payload": "\xff"}',
    "﻿{}".encode(),
    '{"kind": "count"}'.encode("utf-16"),
    b"{" + b",".join(b'"k%d": 1' % n for n in range(10_001)) + b"}",
)


async def test_row_7_what_is_no_json_is_refused(database_url):
    async with world(database_url) as house:
        for raw in NO_JSON:
            answer = await house.operator.post("/api/jobs", content=raw, headers=AS_JSON)
            assert (400, "bad_json") == code_of(answer), raw[:40]
        nothing = await house.operator.post("/api/jobs", content=b"", headers=AS_JSON)

        assert (422, "bad_input") == code_of(nothing)
        assert [] == await house.app.jobs()


async def test_row_7_what_is_just_deep_enough_is_read(database_url):
    async with world(database_url) as house:
        answer = await house.operator.post(
            "/api/jobs",
            content=b'{"kind": "work", "payload": {"a": ' + b"[" * 30 + b"]" * 30 + b"}}",
            headers=AS_JSON,
        )

        assert 201 == answer.status_code, answer.text


UNSTORABLE = (
    ('{"kind": "work", "payload": {"a": ["x\\u0000"]}}', "body.payload.a[0]"),
    ('{"kind": "work", "payload": {"a": "\\ud800"}}', "body.payload.a"),
    ('{"kind": "work", "payload": {"\\udfff": 1}}', "body.payload"),
    ('{"kind": "work", "payload": {"a": "' + "x" * 65_537 + '"}}', "body.payload.a"),
    ('{"kind": "wo\\u200brk"}', "body.kind"),
    ('{"kind": "work\\u202e"}', "body.kind"),
    ('{"kind": "work", "payload": {}, "key": "a\\nb"}', None),
)


async def test_row_8_what_no_database_would_give_back_is_refused_by_its_path(database_url):
    async with world(database_url) as house:
        for text, path in UNSTORABLE:
            answer = await house.operator.post(
                "/api/jobs", content=text.encode(), headers=AS_JSON
            )
            assert (422, "bad_input") == code_of(answer), text[:60]
            if path is not None:
                assert [path] == [each["path"] for each in answer.json()["errors"]]
        assert [] == await house.app.jobs()


# — row 9: fields —


WRONG: tuple[tuple[dict[str, Any], str | None], ...] = (
    ({"surprise": 1}, "body.surprise"),
    ({"kind": 7}, "body.kind"),
    ({"kind": ""}, "body.kind"),
    ({"kind": "x" * 101}, "body.kind"),
    ({"priority": 10**9}, "body.priority"),
    ({"priority": "1"}, "body.priority"),
    ({"priority": 1.5}, "body.priority"),
    ({"priority": True}, "body.priority"),
    ({"run_at": 5}, "body.run_at"),
    ({"run_at": "5"}, "body.run_at"),
    ({"run_at": "2030-01-01T00:00:00"}, "body.run_at"),
    ({"run_at": "yesterday"}, "body.run_at"),
    ({"run_at": "0001-01-01T00:00:00+23:00"}, "body.run_at"),
    ({"run_at": "9999-12-31T23:59:59-23:00"}, "body.run_at"),
    ({"deadline": []}, "body.deadline.str"),
    ({"deadline": "-1s"}, None),
    ({"deadline": 0}, None),
    ({"kind": "nothing of ours"}, None),
    ({"kind": "retoma.order"}, None),
    ({"payload": "not a number"}, "payload"),
)


async def test_row_9_a_field_that_is_not_as_it_should_be_is_named(database_url):
    async with world(database_url) as house:
        for more, path in WRONG:
            answer = await house.operator.post("/api/jobs", json={**SUBMIT, **more})
            assert 422 == code_of(answer)[0], more
            if path is not None:
                assert path in [each["path"] for each in answer.json()["errors"]], more
        assert [] == await house.app.jobs()


async def test_row_9_a_number_is_no_instant_and_no_day(database_url):
    async with world(database_url, applications="ads") as house:
        for path in ("/api/events", "/api/missions"):
            for value in ("0", "0.5", "-1", "1e3"):
                answer = await house.viewer.get(path, params={"until": value})
                assert (422, "bad_input") == code_of(answer), (path, value)
            answer = await house.viewer.get(path, params={"until": "2026-01-31"})
            assert (422 if path == "/api/events" else 200) == answer.status_code


async def test_row_9_what_ends_before_it_begins_is_refused(database_url):
    async with world(database_url) as house:
        reversed_ = "since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z"

        assert (422, "bad_input") == code_of(await house.viewer.get(f"/api/events?{reversed_}"))


# — rows 27 and 28: ids, pages, filters —


NOBODYS = (
    "/api/jobs/%00",
    "/api/jobs/..",
    "/api/jobs/" + "9" * 30,
    "/api/jobs/" + "1" * 10_000,
    "/api/jobs/0",
    "/api/jobs/-1",
    "/api/jobs/1.0",
    "/api/jobs/1%27%20OR%201=1",
    "/api/jobs/9223372036854775807",
    "/api/batches/9223372036854775808",
    "/api/dead/x",
    "/api/jobs/1/evidence/..%2f..%2fetc%2fpasswd",
    "/api/jobs/1/evidence/" + "a" * 64,
    "/api/pools/%27;drop%20table%20pools/things",
    "/enter/..%2f",
)


async def test_row_27_what_cannot_be_an_id_is_nobodys(database_url):
    async with world(database_url) as house:
        for path in NOBODYS:
            answer = await house.operator.get(path)
            assert code_of(answer)[0] in (404, 422), path


BEYOND = (
    "limit=1000000000",
    "limit=0",
    "limit=201",
    "limit=x",
    "offset=-1",
    "sort=secret",
    "state=sleeping",
    "batch=0",
    "text=",
    "text=" + "a" * 201,
    "code=" + "a" * 101,
    "kind=%00",
    "limit=1&limit=2",
    "cursor=abc",
    "cursor=%00",
    "cursor=" + "a" * 4_001,
    "cursor=WyJ4Il0",
)


async def test_row_28_a_page_is_bounded_and_a_filter_known(database_url):
    async with world(database_url) as house:
        for query in BEYOND:
            assert 422 == code_of(await house.viewer.get(f"/api/jobs?{query}"))[0], query


async def test_row_28_a_cursor_is_good_for_its_own_list_alone(database_url):
    async with world(database_url) as house:
        await house.app.submit_many("count", range(3))
        page = (await house.viewer.get("/api/jobs?limit=2")).json()

        following = await house.viewer.get(f"/api/jobs?limit=2&cursor={page['next']}")
        elsewhere = await house.viewer.get(f"/api/jobs?kind=count&cursor={page['next']}")

        assert [[3, 2], [1]] == [
            [each["id"] for each in found["items"]] for found in (page, following.json())
        ]
        assert following.json()["next"] is None
        assert (422, "bad_cursor") == code_of(elsewhere)


async def test_row_28_a_filter_is_no_pattern(database_url):
    """What would be a regex bomb is looked for as it stands."""
    async with world(database_url) as house:
        await house.app.submit("work", {"a": "(a+)+$"})

        found = await house.viewer.get("/api/jobs", params={"text": "(a+)+$"})
        none = await house.viewer.get("/api/jobs", params={"text": "a+a%_"})

        assert (1, 0) == (len(found.json()["items"]), len(none.json()["items"]))


# — row 30: what would steer a log or a terminal —


async def test_row_30_a_name_that_would_break_a_line_is_refused(database_url):
    async with world(database_url) as house:
        for name in ("a\r\nX-Injected: 1", "\x1b[31mred", "${jndi:ldap://x}\u2028"):
            answer = await house.admin.post(
                "/api/keys", json={"person": name, "role": "viewer"}
            )
            assert 422 == code_of(answer)[0]
        fine = await house.admin.post(
            "/api/keys", json={"person": "${jndi:ldap://x}", "role": "viewer"}
        )
        assert 201 == fine.status_code


async def test_row_30_a_request_is_one_line_of_the_log(database_url, capsys):
    async with world(database_url) as house:
        capsys.readouterr()
        answer = await house.viewer.get(
            "/api/jobs?text=%0d%0aforged%1b[31m", headers={"X-Correlation-Id": "a b"}
        )
        after = capsys.readouterr().out

        assert 200 == answer.status_code
        assert 1 == len(after.splitlines())
        assert "forged" not in after


async def test_row_30_a_correlation_that_cannot_be_printed_is_refused(database_url):
    async with world(database_url) as house:
        for value in (b"", b"x" * 201, b"a\tb", b"\xe9"):
            answer = await house.viewer.get("/api/jobs", headers=[(b"x-correlation-id", value)])
            assert (400, "bad_header") == code_of(answer), value


# — rows 34 and 37: the database —


async def test_rows_34_and_37_a_database_that_is_away_is_503_and_nothing_is_half_done(
    database_url,
):
    async with world(database_url) as house:
        await house.app.close()
        away = "postgresql://nobody:CANARY-secret@127.0.0.1:9/none"
        house.app.connection.url, house.app.connection._patience = away, 0.0
        house.site.state.house._access = None

        answers = [
            await house.operator.get("/api/jobs"),
            await house.operator.post("/api/jobs", json=SUBMIT),
        ]
        ready, alive = await house.nobody.get("/readyz"), await house.nobody.get("/livez")

        assert {(503, "database_away")} == {code_of(each) for each in answers}
        assert all("retry-after" in each.headers for each in [*answers, ready])
        assert (503, "degraded") == (ready.status_code, ready.json()["status"])
        assert 200 == alive.status_code
        # Row 34: what it would need to get in stands nowhere.
        assert "CANARY" not in "".join(each.text for each in [*answers, ready])
        house.app.connection.url = database_url
        await house.app.close()


async def test_row_37_a_full_database_is_507(database_url, tmp_path, monkeypatch):
    full = disk.Disk(database_url, tmp_path / "disk")
    for name, value in full.environment.items():
        monkeypatch.setenv(name, value)
    unwatch = disk.watch()
    async with world(database_url) as house:
        full.fill("pages")
        large = {"kind": "work", "payload": {"a": "x" * 60_000}}
        answer = await house.operator.post("/api/jobs", json=large)
        full.free()

        assert (507, "database_full") == code_of(answer)
        assert "retry-after" in answer.headers
        ready = await house.nobody.get("/readyz")
        assert (503, "degraded", "full") == (
            ready.status_code,
            ready.json()["status"],
            ready.json()["database"],
        )
        assert [] == await house.app.jobs()
        assert 201 == (await house.operator.post("/api/jobs", json=large)).status_code
    unwatch()


@contextmanager
def read_only(url: str) -> Iterator[None]:
    """Nothing more is written to it by anybody; as a file on a read-only mount, or a standby."""
    if url.startswith("sqlite"):

        def forbid(connection: apsw.Connection) -> None:
            connection.pragma("query_only", True)

        apsw.connection_hooks.append(forbid)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(forbid)
        return
    with psycopg.connect(url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute("SET default_transaction_read_only = off")
        alter = "ALTER DATABASE {} SET default_transaction_read_only = on"
        connection.execute(sql.SQL(alter).format(name))
        try:
            yield
        finally:
            connection.execute(
                sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name)
            )


async def test_row_37_a_database_that_takes_no_writes_is_503_and_can_still_be_read(
    database_url,
):
    async with world(database_url) as house:
        await house.app.submit("count", 7)
        await house.app.close()  # connections are made anew, and find it so
        house.app.connection._patience, house.site.state.house._access = 0.0, None
        with read_only(database_url):
            seen = await house.operator.get("/api/jobs")
            ready = await house.nobody.get("/readyz")
            answers = [
                await house.operator.post("/api/jobs", json=SUBMIT),
                await house.operator.post("/api/jobs/1/cancel"),
                await house.operator.post("/api/batches", json=MANY),
            ]
            await house.app.close()
        house.site.state.house._access = None

        assert [1] == [each["id"] for each in seen.json()["items"]]
        assert (503, "degraded") == (ready.status_code, ready.json()["status"])
        assert {(503, "database_away")} == {code_of(each) for each in answers}
        assert all("retry-after" in each.headers for each in [*answers, ready])
        assert {State.WAITING: 1} == await house.app.insights.counts()
        assert "ok" == (await house.nobody.get("/readyz")).json()["status"]
        assert 201 == (await house.operator.post("/api/jobs", json=SUBMIT)).status_code


def test_a_body_of_another_shape_is_bounded_as_it_says():
    read_json(b'{"a": [1]}', Shape(depth=2))
    with pytest.raises(Refusal):
        read_json(b'{"a": [[1]]}', Shape(depth=2))


async def test_row_37_a_database_of_another_retoma_is_503_too(database_url):
    async with world(database_url) as house:
        await change(
            await house.app.database(),
            "INSERT INTO retoma_migrations SELECT room, 9999, 'later', '', (SELECT clock())"
            " FROM retoma_migrations WHERE number = 1",
        )
        await house.app.close()
        house.site.state.house._access = None

        answer = await house.operator.get("/api/jobs")

        assert (503, "database_unfit") == code_of(answer)
        assert "degraded" == (await house.nobody.get("/readyz")).json()["status"]


# — language, headers, hosts —


async def test_a_problem_speaks_the_language_of_whoever_asks(database_url):
    async with world(database_url) as house:
        for header, expected in (
            ("pt-BR,pt;q=0.9,en;q=0.8", "não existe o job 9"),
            ("en-GB", "there is no job 9"),
            ("de, pt;q=0.3, en;q=0.2", "não existe o job 9"),
            ("en;q=0, pt", "não existe o job 9"),
            ("*;;;q=,", "there is no job 9"),
            ("", "there is no job 9"),
        ):
            answer = await house.viewer.get("/api/jobs/9", headers={"Accept-Language": header})
            assert expected == answer.json()["detail"]
            assert answer.headers["content-language"] in ("pt-BR", "en")
        flawed = await house.viewer.get("/api/jobs?limit=0", headers={"Accept-Language": "pt"})
        assert [{"path": "query.limit", "message": "é menor que 1"}] == flawed.json()["errors"]


async def test_every_answer_has_the_headers_that_keep_a_browser_safe(database_url):
    async with world(database_url) as house:
        for path in ("/api/jobs", "/api/jobs/9", "/nowhere", "/livez", "/docs"):
            answer = await house.viewer.get(path)
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "nosniff" == answer.headers["x-content-type-options"]
            assert "same-origin" == answer.headers["referrer-policy"]
            assert "access-control-allow-origin" not in answer.headers
            assert ("/api" in path) == (answer.headers.get("cache-control") == "no-store")


async def test_another_host_is_refused(database_url):
    """A name that somebody else points at this machine is no name of ours."""
    async with world(database_url) as house:
        for host in ("evil.example", "127.0.0.1.evil.example", "127.0.0.1:81", ""):
            answer = await house.viewer.get("/api/jobs", headers={"Host": host})
            assert (421, "wrong_host") == code_of(answer), host


async def test_a_public_name_is_ours_too(database_url):
    async with world(database_url, public_url="https://retoma.example.org") as house:
        for host, expected in (("retoma.example.org", 200), ("127.0.0.1", 200), ("x.org", 421)):
            answer = await house.viewer.get("/api/jobs", headers={"Host": host})
            assert expected == answer.status_code


async def test_whoever_asks_too_often_waits(database_url):
    async with world(database_url, bound=Bound(per_key=1.0, burst=3.0)) as house:
        statuses = [(await house.viewer.get("/api/me")).status_code for _ in range(4)]
        other = await house.operator.get("/api/me")
        refused = await house.viewer.get("/api/me")

        assert [200, 200, 200, 429] == statuses
        assert (200, (429, "too_many_requests")) == (other.status_code, code_of(refused))
        assert 1 <= int(refused.headers["retry-after"]) <= 2


async def test_nothing_is_there_or_not_so(database_url):
    async with world(database_url) as house:
        assert (404, "not_found") == code_of(await house.viewer.get("/api/nothing"))
        wrong = await house.viewer.delete("/api/jobs")
        assert (405, "method_not_allowed") == code_of(wrong)
        assert "GET, POST" == wrong.headers["allow"]
        named = await house.viewer.get("/api/dead/retry")  # the address of a verb is no id
        assert (405, "method_not_allowed") == code_of(named)
        assert "POST" == named.headers["allow"]


async def test_a_failure_of_ours_tells_nothing_of_itself(database_url, capsys):
    async with world(database_url) as house:

        class Broken:
            """Raises what nobody expects."""

            def __getattr__(self, name: str) -> object:
                raise RuntimeError("SELECT secret FROM /etc/passwd")

        await house.viewer.get("/api/jobs")  # what is built once is built
        whole, house.site.state.house.retoma = house.site.state.house.retoma, Broken()
        answer = await house.viewer.get("/api/jobs")
        house.site.state.house.retoma = whole

        assert (500, "internal") == code_of(answer)
        assert "SELECT" not in answer.text
        assert "passwd" not in answer.text
        assert answer.json()["trace_id"] in capsys.readouterr().out
