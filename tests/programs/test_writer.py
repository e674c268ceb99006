"""The writer over HTTP, as §9.2 and §9.3 of seed 004 have it: M6, M7, H-64, H-66, H-68; bad inputs 20, 21, 33."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from retoma.db import adhoc, verbatim
from retoma.programs.writer import Caps
from retoma.programs.writer.model import KEPT
from retoma.secret import Secret
from retoma.vault import SecretSlot
from retoma.web import Bound
from tests.outbound.fakes import answer, endless, redirect
from tests.programs.writers import KEY, TOKEN, ad, asked, shop


def near(folder: Path) -> str:
    """A target for what is decided before anybody asks one."""
    return f"sqlite:///{folder / 'target.db'}"


async def test_m6_m7_all_that_is_good_is_stored_and_a_second_time_changes_nothing(
    database_url, tmp_path
):
    async with shop(database_url, tmp_path) as here:
        here.tell([ad(n) for n in range(35)], beside={"ads": [1]}, more=[{"x": "]}"}])

        first = await here.done()
        rows = await here.rows()
        again = await here.done()

        assert (
            {
                "total": 35,
                "processed": 35,
                "success_count": 35,
                "failed_count": 0,
            }
            == first["progress"]
            == again["progress"]
        )
        assert "completed" == first["status"] == again["status"]
        assert 35 == len(rows)
        assert rows == await here.rows()
        assert ("ad7", "Ad número 7", 7) == next(row for row in rows if row[0] == "ad7")[:3]


async def test_an_answer_has_the_members_of_the_document_and_no_others(tmp_path):
    async with shop(near(tmp_path), tmp_path) as here:
        here.tell([ad(1)])

        made = (await here.process({"job_id": "MIS-7-g1", **asked(here.url)})).json()
        told = await here.ended("MIS-7-g1")

        assert {"job_id", "status", "created_at"} == made.keys()
        assert ("MIS-7-g1", "processing") == (made["job_id"], made["status"])
        members = {"job_id", "status", "progress", "failed_items", "started_at"}
        assert members | {"completed_at"} == told.keys()
        for instant in (made["created_at"], told["started_at"], told["completed_at"]):
            assert 20 == len(instant)
            assert instant.endswith("Z")


async def test_the_request_of_the_document_is_taken_with_its_headers(database_url, tmp_path):
    """§9.2, as written: the token goes where the profile allows, and is kept by nobody after that."""
    async with shop(database_url, tmp_path) as here:
        here.tell([ad(1)])
        here.source.answer = lambda _: here.says["/data.json"]  # whoever asks
        body = {"job_id": "uuid-opcional", **asked(here.url)}
        body["source"]["headers"] = {"Authorization": "Bearer CANARY-document-token"}

        made = await here.process(body)
        told = await here.ended("uuid-opcional")

        assert (200, "completed") == (made.status_code, told["status"])
        [fetch] = [each for each in here.source.asked if each.target == "/data.json"]
        assert "Bearer CANARY-document-token" == fetch.headers["authorization"]
        retoma = here.desk.retoma
        assert "CANARY" not in str(await retoma.jobs())
        left = await (await retoma.database()).read(
            lambda tx: tx.all(adhoc("SELECT owner, field FROM secrets"))
        )
        assert [row for row in left if row[0] == "writer_requests"] == []


async def test_h68_the_job_id_is_the_idempotency_key(tmp_path):
    async with shop(near(tmp_path), tmp_path) as here:
        here.tell([ad(1)])
        body = {"job_id": "550e8400-e29b-41d4-a716-446655440000", **asked(here.url)}

        answers = await asyncio.gather(*(here.process(body) for _ in range(10)))
        await here.ended(body["job_id"])
        later = await here.process(body)
        other = await here.process({**body, **asked(f"{here.source.url}/other.json")})

        assert {200} == {each.status_code for each in answers}
        assert 1 == len(
            {(each.json()["job_id"], each.json()["created_at"]) for each in answers}
        )
        assert "completed" == later.json()["status"]
        assert (409, "idempotency_mismatch") == problem(other)
        assert 1 == len(here.source.asked)


BAD: dict[str, Any] = {
    "extra column": (ad(101, surprise=1), "no column for 'surprise'"),
    "ten megabytes": (ad(102, title="x" * 10_000_000), "more than 1048576 characters"),
    "too long": (ad(103, title="x" * 51), "title is longer than 50"),
    "missing id": ({"title": "t"}, "id is missing"),
    "null id": (ad(104, id=None), "id is null"),
    "number as id": (ad(105, id=5), "id is not a text"),
    "missing title": ({"id": "ad106"}, "title is missing"),
    "null title": (ad(107, title=None), "title is null"),
    "no number": (ad(108, n="x"), "n is not a whole number"),
    "no boolean": (ad(109, active=1), "active is neither true nor false"),
    "no instant": (ad(110, seen_at="yesterday"), "seen_at is not an instant"),
    "a NUL": (ad(111, title="a\0b"), "title has a NUL"),
    "half a pair": (ad(112, title="\ud800"), "title has half a surrogate pair"),
    "refused by the database": (ad(113, n=2_000_000), "constraint"),
    "no object": ("an ad", "it is no object"),
    "twice in a group": (ad(0), "is in this group already"),
}


async def test_bad_21_one_bad_row_never_costs_its_neighbours(database_url, tmp_path):
    async with shop(database_url, tmp_path, group=100) as here:
        good = [ad(n) for n in range(40)]
        mixed = [*good[:20], *(item for item, _ in BAD.values()), *good[20:]]
        here.tell(mixed)

        told = await here.done()

        assert "partial" == told["status"]
        assert {each["id"] for each in good} == {row[0] for row in await here.rows()}
        failed = told["failed_items"]
        assert list(range(20, 20 + len(BAD))) == [each["index"] for each in failed]
        for (item, why), each in zip(BAD.values(), failed, strict=True):
            assert why in each["error"], each
            if isinstance(item, dict) and item.get("id") == "ad103":
                assert item == each["data"]
        assert 40 == told["progress"]["success_count"]
        assert len(BAD) == told["progress"]["failed_count"]
        assert len(json.dumps(failed)) < 100_000


async def test_failed_items_are_capped_and_all_of_them_counted(database_url, tmp_path):
    async with shop(database_url, tmp_path, group=100) as here:
        here.tell([ad(1), *({"no": n, "text": "x" * 9_000} for n in range(KEPT + 60))])

        told = await here.done()

        assert KEPT + 60 == told["progress"]["failed_count"]
        assert list(range(1, KEPT + 1)) == [each["index"] for each in told["failed_items"]]


async def test_what_no_column_takes_goes_where_the_profile_says(database_url, tmp_path):
    async with shop(database_url, tmp_path, rest="more") as here:
        here.tell([ad(1, colour="red", deep={"a": [1]}), ad(2), ad(3, more={"own": 1})])

        told = await here.done()

        assert "completed" == told["status"], told
        more = [row[6] for row in await here.rows()]
        read = [json.loads(each) if isinstance(each, str) else each for each in more]
        assert [{"colour": "red", "deep": {"a": [1]}}, None, {"own": 1}] == read


async def test_a_field_that_an_item_does_not_name_is_left_alone(database_url, tmp_path):
    async with shop(database_url, tmp_path) as here:
        here.tell([ad(1)])
        await here.done()
        here.tell([{"id": "ad1", "title": "new"}, {"id": "ad2", "title": "t"}])

        await here.done()

        one, two = await here.rows()
        assert ("new", 1) == (one[1], one[2])
        assert ("t", None, "then") == (two[1], two[2], two[7])


async def test_nothing_stored_is_failed_and_nothing_there_is_completed(database_url, tmp_path):
    async with shop(database_url, tmp_path) as here:
        here.tell([{"no": 1}, {"no": 2}])
        nothing_stored = await here.done()
        here.tell([])
        nothing_there = await here.done()

        assert ("failed", "nothing_stored") == (
            nothing_stored["status"],
            nothing_stored["error_code"],
        )
        assert "completed" == nothing_there["status"]
        assert 0 == nothing_there["progress"]["total"]


async def breaks_off(text: bytes) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n" + text


def broken(text: bytes) -> bytes:
    return answer(200, text, content_type="application/json")


async def test_bad_33_a_source_that_misbehaves_ends_the_job_with_a_reason(
    database_url, tmp_path
):
    caps = Caps(most_bytes=100_000, seconds=5, silence=0.3)
    whole = json.dumps({"ads": [ad(n) for n in range(25)]}).encode()
    says = {
        "/cut": broken(whole[: len(whole) - 200]),
        "/noise": broken(b"<html>"),
        "/other": broken(b'{"items": []}'),
        "/no-utf8": broken(b'{"ads": ["\xff"]}'),
        "/trailing": broken(b'{"ads": []} {"ads": []}'),
        "/away": redirect("http://127.0.0.1:1/x"),
        "/elsewhere": redirect("http://example.org/x"),
        "/gone": answer(404),
        "/refused": answer(403),
        "/large": broken(b'{"ads": [' + b"1," * 60_000 + b"1]}"),
    }
    ends: dict[str, str] = {}
    async with shop(database_url, tmp_path, caps=caps) as here:
        here.says.update(says)
        beside = here.source.answer
        odd = {
            "/silent": lambda: endless(b"HTTP/1.1 200 OK\r\n\r\n", b" ", 1.0),
            "/broke": lambda: breaks_off(whole[:3_000]),
        }
        here.source.answer = lambda it: odd[it.target]() if it.target in odd else beside(it)
        made = {}
        for path in (*says, *odd):
            made[path] = (await here.process(asked(f"{here.source.url}{path}"))).json()[
                "job_id"
            ]
        for path, job in made.items():
            told = await here.ended(job)
            assert "failed" == told["status"]
            ends[path] = told["error_code"]
            if path in ("/cut", "/broke"):
                assert told["progress"]["processed"] in (10, 20)
        rows = await here.rows()

    assert {
        "/cut": "source_broken",
        "/broke": "bad_answer",
        "/noise": "no_such_array",
        "/other": "no_such_array",
        "/no-utf8": "source_broken",
        "/trailing": "source_broken",
        "/away": "ssrf_blocked",
        "/elsewhere": "ssrf_blocked",
        "/gone": "permanent",
        "/refused": "permanent",
        "/large": "too_large",
        "/silent": "timeout",
    } == ends
    assert 20 == len(rows)


async def test_a_source_that_changed_under_the_job_is_read_anew(database_url, tmp_path):
    """What was counted before is not what begins it: nothing is half counted."""
    async with shop(database_url, tmp_path) as here:
        old = json.dumps({"ads": [ad(n) for n in range(25)]}).encode()
        new = [ad(n, title="new") for n in range(1, 31)]
        times = 0

        def told(_: Any) -> Any:
            nonlocal times
            times += 1
            if times == 1:
                return breaks_off(old[:-50])
            return broken(json.dumps({"ads": new}).encode())

        here.source.answer = told

        ended = await here.done()

        assert "completed" == ended["status"]
        assert (30, 30) == (
            ended["progress"]["total"],
            ended["progress"]["success_count"],
        )
        titles = {row[0]: row[1] for row in await here.rows()}
        assert {"new"} == {titles[each["id"]] for each in new}


# — who may ask, and for what —


def problem(response: Any) -> tuple[int, str]:
    assert "application/problem+json" == response.headers["content-type"], response.text
    return response.status_code, response.json()["code"]


async def test_errors_have_the_statuses_of_the_document(tmp_path):
    small = Bound(body=2_000, per_key=1e6, per_address=1e6)
    async with shop(near(tmp_path), tmp_path, bound=small) as here:
        body = asked(here.url)
        post = here.http.post

        without = {"table": "ads"}
        assert (400, "bad_json") == problem(
            await post("/process", content=b"{", headers={"content-type": "application/json"})
        )
        for key in ("", "wrong", KEY + "x"):
            headers = {"x-api-key": key}
            assert (401, "sign_in") == problem(
                await post("/process", json=body, headers=headers)
            )
            assert (401, "sign_in") == problem(
                await here.http.get("/status/x", headers=headers)
            )
        assert (404, "not_found") == problem(await here.http.get("/status/nobody"))
        assert (404, "not_found") == problem(await here.http.get("/status/%00"))
        assert (404, "not_found") == problem(await here.http.get("/nothing"))
        large = {**body, "job_id": "x" * 3_000}
        assert (413, "too_large") == problem(await post("/process", json=large))
        for bad in (
            {**body, "config": without},
            {"config": body["config"]},
            {**body, "source": {**body["source"], "type": "file"}},
            {**body, "job_id": "../x"},
            {**body, "more": 1},
            {**body, "source": {**body["source"], "headers": {"Host": "example.org"}}},
            {**body, "source": {**body["source"], "headers": {"x": "a\r\nb: c"}}},
            asked("http://169.254.169.254/latest"),
            asked("http://example.org/data.json"),
            asked(here.url.replace("http://", "http://user@")),
            asked("file:///etc/passwd"),
        ):
            assert (422, "bad_input") == problem(await post("/process", json=bad)), bad
        assert [] == here.source.asked


async def test_too_many_requests_are_429(tmp_path):
    slow = Bound(per_key=1, burst=1)
    async with shop(near(tmp_path), tmp_path, bound=slow) as here:
        answers = [await here.http.get("/status/x") for _ in range(3)]

        assert (429, "too_many_requests") == problem(answers[-1])
        assert "retry-after" in answers[-1].headers


async def test_health_needs_no_key_and_asks_the_target(database_url, tmp_path):
    async with shop(database_url, tmp_path) as here:
        well = await here.http.get("/health", headers={"x-api-key": ""})
        gone = verbatim("DROP TABLE ads")
        await here.target.write(lambda tx: tx.for_caller(gone), verb="drop")
        here.tell([ad(1)])
        told = await here.done()

        assert (200, {"status": "healthy"}) == (well.status_code, well.json())
        assert ("failed", "target_schema") == (told["status"], told["error_code"])


async def test_a_target_that_is_away_is_not_healthy(tmp_path):
    async with shop(near(tmp_path), tmp_path) as here:
        vault = here.desk._vault(await here.desk.retoma.database())
        place = SecretSlot("writer_profiles", "target", "ads_v1")
        await vault.put(place, Secret("postgresql://127.0.0.1:1/nobody"), actor="test")

        told = await here.http.get("/health")

        assert (503, {"status": "unhealthy"}) == (told.status_code, told.json())


HOSTILE = [
    "ads; DROP TABLE ads",
    '"ads"',
    "pg_catalog.pg_user",
    "id) DO UPDATE SET id = 'x' --",
    "__proto__",
    "a.b[*]",
    "ads--",
    "ads/*",
    "*/ads",
    "ads'",
    'ads" CASCADE; --',
    "public.ads",
    "ADS",
    "ads ",
    " ads",
    "ads\t",
    "ads\n",
    "\u202eads",
    "\u0430ds",
    "ads\u200b",
    "$(ads)",
    "${ads}",
    "`ads`",
    "[ads]",
    "%s",
    "%(ads)s",
    ":ads",
    "?",
    "{}",
    "{0}",
    "ads UNION SELECT 1",
    "ads WHERE 1=1",
    "1",
    "-1",
    "null",
    "true",
    "",
    "x" * 10_000,
    "information_schema.tables",
    "sqlite_master",
]


async def test_h66_bad_20_no_identifier_of_a_request_reaches_sql(tmp_path):
    """200 hostile identifiers: each is 422 unknown_profile, and no statement has seen it."""
    fields = ("table", "schema", "operation", "conflict_key", "json_path")
    async with shop(near(tmp_path), tmp_path) as here:
        here.tell([ad(1)])
        for name in fields:
            for text in HOSTILE:
                refused = await here.process(asked(here.url, **{name: text}))
                assert (422, "unknown_profile") == problem(refused), (name, text)

        assert 200 == len(fields) * len(HOSTILE)
        assert {} == here.desk._databases  # the target was not even opened
        assert [] == await here.desk.retoma.jobs()
        assert [] == here.source.asked
        files = (each for each in tmp_path.glob("writer.db*") if each.is_file())
        written = b"".join(each.read_bytes() for each in files)
        assert [] == [each for each in HOSTILE if len(each) > 12 and each.encode() in written]
        assert "completed" == (await here.done())["status"]


async def test_a_secret_is_shown_nowhere(tmp_path, caplog):
    async with shop(near(tmp_path), tmp_path) as here:
        here.says["/data.json"] = answer(403)
        told = await here.done()
        here.says["/data.json"] = answer(200, document_with_token())
        stored = await here.done()
        events = [
            each.details
            for job in await here.desk.retoma.jobs()
            for each in await here.desk.retoma.events(job.id)
        ]

        assert TOKEN not in json.dumps([told, stored]) + str(events) + caplog.text
        assert KEY not in str(events) + caplog.text
    assert TOKEN.encode() not in (tmp_path / "writer.db").read_bytes()


def document_with_token() -> bytes:
    return json.dumps({"ads": [ad(1)]}).encode()


async def test_profiles_are_checked_and_removed(database_url, tmp_path):
    name = "ads_v1"
    async with shop(database_url, tmp_path) as here:
        desk = here.desk
        assert [] == await desk.check(name)
        more = verbatim("ALTER TABLE ads ADD COLUMN colour text")
        await here.target.write(lambda tx: tx.for_caller(more), verb="alter")

        assert ["colour is new"] == await desk.check(name)

        await desk.remove(name, actor="test")
        assert [] == await desk.profiles()
        assert (422, "unknown_profile") == problem(await here.process(asked(here.url)))
