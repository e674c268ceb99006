"""Whatever the library can do, a program can do over the API: jobs, batches, dead letters, gates, schedules."""

import asyncio
import json
from typing import Any

from retoma import Context, Retoma
from retoma.engine.rules.states import State
from retoma.library.bulk import Bulk
from retoma.services import bulk as orders
from retoma.web import many
from tests.engine.aids import boot, change, claim, eventually, running
from tests.web.aids import World, code_of, world


async def drained(house: World) -> None:
    await house.app.run(until_idle=True)


async def get(house: World, path: str, **params: Any) -> Any:
    answer = await house.viewer.get(path, params=params)
    assert 200 == answer.status_code, answer.text
    return answer.json()


async def do(house: World, path: str, body: Any = None, *, expected: int = 200) -> Any:
    answer = await house.operator.post(path, json=body)
    assert expected == answer.status_code, answer.text
    return answer.json()


async def ids(house: World, path: str, **params: Any) -> list[int]:
    return [each["id"] for each in (await get(house, path, **params))["items"]]


# — jobs —


async def test_a_job_is_submitted_run_and_looked_at(database_url):
    async with world(database_url) as house:
        body = {
            "kind": "work",
            "payload": {"gives": [1, "é"]},
            "key": "n-1",
            "priority": -3,
            "deadline": "1h",
        }
        answer = await house.operator.post(
            "/api/jobs", json=body, headers={"X-Correlation-Id": "req-7"}
        )
        assert (201, "/api/jobs/1") == (answer.status_code, answer.headers["location"])
        await drained(house)

        shown = await get(house, "/api/jobs/1")
        assert ("done", [1, "é"], "req-7", -3, "n-1") == tuple(
            shown[name] for name in ("state", "result", "correlation", "priority", "key")
        )
        events = (await get(house, "/api/jobs/1/events"))["items"]
        assert ["submitted", "claimed", "step_saved", "done"] == [
            each["type"] for each in events
        ]
        assert "Olga" == events[0]["actor"]
        assert ["looked"] == [
            each["name"] for each in (await get(house, "/api/jobs/1/steps"))["items"]
        ]
        assert ["done"] == [each["ended"] for each in await get(house, "/api/jobs/1/attempts")]
        assert "done since" in (await get(house, "/api/jobs/1/explain"))["why"]
        assert {"work": {"done": 1}} == await get(house, "/api/jobs/counts")


async def test_jobs_are_filtered_by_whatever_is_known_of_them(database_url):
    async with world(database_url) as house:
        batch = await house.app.submit_many("count", [1, 2], name="b")
        await house.app.submit("work", {"dies": "no lamp 7", "code": "OUT"})
        await house.app.submit("work", {"gives": "needle"})
        await drained(house)

        assert [4, 3, 2, 1] == await ids(house, "/api/jobs")
        assert [2, 1] == await ids(house, "/api/jobs", kind="count")
        assert [2, 1] == await ids(house, "/api/jobs", batch=batch.id)
        assert [3] == await ids(house, "/api/jobs", state="dead")
        assert [3] == await ids(house, "/api/jobs", code="OUT")
        assert [4] == await ids(house, "/api/jobs", text="NEEDLE")
        assert [4, 3] == await ids(house, "/api/jobs", checkpoint="looked")
        assert [4] == await ids(house, "/api/jobs", checkpoint="looked", state="done")
        assert [2, 1] == await ids(house, f"/api/batches/{batch.id}/items")
        assert [] == await ids(house, f"/api/batches/{batch.id}/items", state="dead")


async def test_long_timelines_and_many_steps_come_in_pages(database_url):
    async with world(database_url) as house:

        @house.app.job
        async def many_steps(ctx: Context) -> None:
            for n in range(5):
                await ctx.step("look", noop, key=str(n))

        await house.app.submit("many_steps")
        await drained(house)

        for path, field in (("events", "seq"), ("steps", "key")):
            met: list[Any] = []
            cursor: dict[str, str] = {}
            while True:
                page = await get(house, f"/api/jobs/1/{path}", limit=2, **cursor)
                met += [each[field] for each in page["items"]]
                if page["next"] is None:
                    break
                cursor = {"cursor": page["next"]}
            assert sorted(met) == met
            assert (8 if path == "events" else 5) == len(set(met)) == len(met)


async def noop() -> None: ...


async def test_row_12_a_cancel_is_answered_the_same_twice(database_url):
    async with world(database_url) as house:
        await house.app.submit_many("count", [1, 2])

        first = await do(house, "/api/jobs/1/cancel")
        again = await do(house, "/api/jobs/1/cancel")
        await drained(house)
        completed = await house.operator.post("/api/jobs/2/cancel")

        assert {"job": 1, "state": "canceled", "answer": "canceled"} == first == again
        assert (409, "illegal_move") == code_of(completed)
        assert "done" == completed.json()["state"]


async def test_row_12_cancel_and_completion_have_one_winner(database_url):
    async with world(database_url) as house:
        gate, begun = asyncio.Event(), asyncio.Event()

        @house.app.job
        async def slow(ctx: Context) -> None:
            begun.set()
            await gate.wait()

        await house.app.submit("slow")
        async with running(house.app):
            await begun.wait()
            asked = await do(house, "/api/jobs/1/cancel")
            gate.set()
            ended = await eventually(lambda: ended_job(house.app, 1))

        assert "cancel_requested" == asked["answer"]
        ends = [each.type for each in await house.app.events(1)]
        assert 1 == sum(each in ("done", "canceled") for each in ends)
        assert ended.state in (State.DONE, State.CANCELED)


async def ended_job(app: Retoma, job: int) -> Any:
    found = await app.get(job)
    return found if found.ended else None


async def test_row_13_fifty_who_resume_resume_once(database_url):
    async with world(database_url) as house:
        batch = await house.app.submit_many("work", [{"parks": "look"}] * 3)
        await drained(house)
        assert {State.PARKED: 3} == await house.app.insights.counts()

        alone = await asyncio.gather(
            *(house.operator.post("/api/jobs/1/resume") for _ in range(50))
        )
        whole = await asyncio.gather(
            *(house.operator.post(f"/api/batches/{batch.id}/resume") for _ in range(50))
        )

        assert [200] + [409] * 49 == sorted(each.status_code for each in alone)
        assert 2 == sum(each.json()["moved"] for each in whole)
        await drained(house)
        assert [2, 2, 2] == [(await house.app.get(n)).epoch for n in (1, 2, 3)]
        over = await house.operator.post(f"/api/batches/{batch.id}/resume")
        assert (409, "illegal_move") == code_of(over)


async def test_rows_13_and_14_a_healthy_run_is_left_alone(database_url):
    async with world(database_url) as house:
        gate, begun = asyncio.Event(), asyncio.Event()

        @house.app.job
        async def slow(ctx: Context) -> None:
            begun.set()
            await gate.wait()

        await house.app.submit("slow")
        async with running(house.app):
            await begun.wait()
            answers = [
                await house.operator.post(f"/api/jobs/1/{verb}", json=body)
                for verb, body in (("resume", None), ("retry", {"confirm": True}))
            ]
            gate.set()
            await eventually(lambda: ended_job(house.app, 1))

        assert {(409, "lease_valid")} == {code_of(each) for each in answers}
        assert {"running"} == {each.json()["state"] for each in answers}
        assert 1 == (await house.app.get(1)).epoch


async def test_row_14_what_ended_well_is_run_again_once_somebody_confirms(database_url):
    async with world(database_url) as house:
        await house.app.submit("count", 1)
        await drained(house)

        asked = await house.operator.post("/api/jobs/1/retry")
        assert (409, "confirmation_needed") == code_of(asked)
        again = await do(house, "/api/jobs/1/retry", {"confirm": True})
        waiting = await house.operator.post("/api/jobs/1/retry", json={"confirm": True})

        assert (2, "waiting") == (again["generation"], again["state"])
        assert (409, "illegal_move") == code_of(waiting)


async def test_a_job_is_skipped_with_its_reason(database_url):
    async with world(database_url) as house:
        await house.app.submit("count", 1)

        skipped = await do(house, "/api/jobs/1/skip", {"why": "not wanted"})

        assert "skipped" == skipped["state"]
        assert {"why": "not wanted"} == (await house.app.events(1))[-1].details


async def test_work_that_nobody_has_seen_end_is_resolved(database_url):
    async with world(database_url) as house:
        await parked_unknown(house)

        wrong = await house.operator.post("/api/jobs/1/resolve", json={"outcome": "adopt"})
        adopted = await do(house, "/api/jobs/1/resolve", {"outcome": "adopt", "handle": 77})
        over = await house.operator.post("/api/jobs/1/resolve", json={"outcome": "gone"})

        assert (422, "bad_input") == code_of(wrong)
        assert "waiting" == adopted["state"]
        assert (409, "illegal_move") == code_of(over)
        assert [77] == [
            step.value and json.loads(step.value) for step in await house.app.steps(1)
        ]


async def parked_unknown(house: World) -> None:
    """A step begun by a runner that was lost, parked because nobody knows what became of it."""
    await house.app.submit("count", 1)
    database = await house.app.database()
    me = await boot(database, knows=("count@1",))
    await claim(database, me, queues=("count",), knows=("count@1",))
    await change(
        database,
        "INSERT INTO steps (job, name, version, key, generation, epoch, state, begun_at)"
        " VALUES (1, 'charge', 1, '', 1, 1, 'begun', (SELECT clock()))",
    )
    await change(
        database,
        "UPDATE jobs SET state = 'parked', reason = 'unknown_remote', runner = NULL, turn = NULL"
        " WHERE id = 1",
    )


async def test_evidence_is_saved_as_text_and_never_shown(database_url):
    async with world(database_url) as house:
        page = "<script>alert('x')</script>"
        await house.app.submit("work", {"evidence": page, "dies": "look at it"})
        await house.app.submit("work", {"evidence": "other"})
        await drained(house)

        [piece] = await get(house, "/api/jobs/1/evidence")
        path = f"/api/jobs/1/evidence/{piece['sha256']}"
        answer = await house.operator.get(path)
        elsewhere = await house.operator.get(path.replace("/1/", "/2/"))

        assert page == answer.text
        assert "text/plain; charset=utf-8" == answer.headers["content-type"]
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert "sandbox; default-src 'none'" == answer.headers["content-security-policy"]
        assert (404, "not_found") == code_of(elsewhere)
        assert (403, "not_allowed") == code_of(await house.viewer.get(path))


async def test_a_viewer_sees_what_happened_and_no_stack(database_url):
    async with world(database_url) as house:
        await house.app.submit("work", {"breaks": "oh"})
        await drained(house)

        for path in ("/api/jobs/1/events", "/api/dead/1"):
            seen = (await house.viewer.get(path)).text
            assert "oh" in seen
            assert "Traceback" not in seen
            assert "aids.py" not in seen
            assert "aids.py" in (await house.operator.get(path)).text


# — many jobs —


async def test_many_jobs_are_moved_by_their_ids_and_the_rest_is_named(database_url):
    async with world(database_url) as house:
        await house.app.submit_many("work", [{"dies": "x"}, {}])
        await drained(house)
        await house.app.submit("count", 1, delay=60)

        wanted = {"verb": "retry", "ids": [1, 2, 3, 99]}
        dry = await do(house, "/api/jobs/orders", {**wanted, "dry_run": True})
        done = await do(house, "/api/jobs/orders", wanted)

        assert (4, 0) == (dry["matching"], dry["moved"])
        assert (2, [(3, "waiting"), (99, None)]) == (
            done["moved"],
            [(each["job"], each["state"]) for each in done["left"]],
        )


async def test_a_few_that_are_so_are_moved_at_once(database_url):
    async with world(database_url) as house:
        await house.app.submit_many("count", range(5))
        where = {"kind": "count", "state": "waiting"}

        dry = await do(
            house, "/api/jobs/orders", {"verb": "cancel", "where": where, "dry_run": True}
        )
        assert {State.WAITING: 5} == await house.app.insights.counts()
        done = await do(house, "/api/jobs/orders", {"verb": "cancel", "where": where})

        assert (5, True, 5, None) == (dry["matching"], dry["exact"], done["moved"], done["job"])
        assert {State.CANCELED: 5} == await house.app.insights.counts()


async def test_many_are_moved_by_a_job_of_the_house(database_url, monkeypatch):
    monkeypatch.setattr(many, "FEW", 3)
    async with world(database_url) as house:
        await house.app.submit_many("count", range(450))

        answer = await house.operator.post(
            "/api/jobs/orders", json={"verb": "cancel", "where": {"kind": "count"}}
        )
        told = answer.json()
        assert (202, f"/api/jobs/{told['job']}") == (
            answer.status_code,
            answer.headers["location"],
        )
        await house.app.run(until_idle=True, kinds=house.site.state.house.own)

        order = await get(house, f"/api/jobs/{told['job']}")
        assert ("done", {"moved": 450, "met": 450}) == (order["state"], order["result"])
        assert 450 == (await house.app.insights.counts())[State.CANCELED]
        assert "Olga" == (await house.app.events(1))[-1].actor
        given = (await get(house, "/api/events", verb="order.given"))["items"]
        assert ["Olga"] == [each["actor"] for each in given]


async def test_an_order_under_a_key_is_given_once(database_url):
    async with world(database_url) as house:
        await house.app.submit_many("count", range(3))
        body = {"verb": "cancel", "where": {"kind": "count"}}

        answers = [
            await house.operator.post(
                "/api/jobs/orders", json=body, headers={"Idempotency-Key": "k"}
            )
            for _ in range(2)
        ]

        assert {202} == {each.status_code for each in answers}
        assert 1 == len({each.text for each in answers})
        assert 1 == len(await house.app.jobs(kind=orders.KIND))


async def test_an_order_taken_up_again_meets_nobody_twice(database_url, monkeypatch):
    """Killed in the middle: the pages that were done are read back, the open one moves nothing twice."""
    monkeypatch.setattr(many, "FEW", 0)
    async with world(database_url) as house:
        await house.app.submit_many("work", [{"dies": "x"}] * 250)
        await drained(house)
        told = await do(house, "/api/dead/retry", {"where": {"code": "SHOP"}}, expected=202)
        calls = 0

        class DiesAfterOne(Bulk):
            async def apply_page(self, *args: Any, **how: Any) -> Any:
                nonlocal calls
                calls += 1
                made = await super().apply_page(*args, **how)
                if calls == 2:
                    raise RuntimeError("the process is gone, and its page committed")
                return made

        house.app.bulk = DiesAfterOne(house.app.connection)
        own = house.site.state.house.own
        async with running(house.app, kinds=own):
            await eventually(lambda: ended_job(house.app, told["job"]), within=60)

        assert "done" == (await get(house, f"/api/jobs/{told['job']}"))["state"]
        assert 3 == calls
        generations = {each.generation for each in await house.app.jobs(kind="work", limit=200)}
        assert {2} == generations


# — batches —


async def test_a_batch_is_submitted_steered_and_looked_at(database_url):
    async with world(database_url) as house:
        made = await do(
            house,
            "/api/batches",
            {
                "kind": "work",
                "payloads": [{}, {"dies": "a", "code": "A"}, {"dies": "b"}],
                "name": "x",
            },
            expected=201,
        )
        assert (1, 3, "x") == (made["id"], made["submitted"], made["name"])
        assert {"paused": True, "changed": True} == await do(house, "/api/batches/1/pause")
        assert {"paused": True, "changed": False} == await do(house, "/api/batches/1/pause")
        assert "paused" == (await get(house, "/api/batches/1"))["state"]
        await do(house, "/api/batches/1/unpause")
        await drained(house)

        shown = await get(house, "/api/batches/1")
        assert (
            "finished_with_errors",
            3,
            {"done": 1, "dead": 2},
            {"A": 1, "SHOP": 1},
        ) == tuple(shown[name] for name in ("state", "ended", "counts", "codes"))
        retried = await do(house, "/api/batches/1/retry-failed", {"codes": ["A"]})
        skipped = await do(house, "/api/batches/1/skip", {"why": "enough", "codes": ["SHOP"]})
        canceled = await do(house, "/api/batches/1/cancel")
        assert (1, 1, 1) == (retried["moved"], skipped["moved"], canceled["moved"])
        assert {"canceled": 1, "done": 1, "skipped": 1} == (await get(house, "/api/batches/1"))[
            "counts"
        ]
        assert [1] == await ids(house, "/api/batches")


async def test_a_verb_on_a_large_batch_is_a_job_of_its_own(database_url, monkeypatch):
    monkeypatch.setattr(orders, "FEW_IN_BATCH", 3)
    async with world(database_url) as house:
        await house.app.submit_many("count", range(10))

        told = await do(house, "/api/batches/1/cancel", expected=202)
        await house.app.run(until_idle=True, kinds=house.site.state.house.own)

        assert {"moved": 10} == (await get(house, f"/api/jobs/{told['job']}"))["result"]
        assert {"canceled": 10} == (await get(house, "/api/batches/1"))["counts"]


# — dead letters —


async def test_dead_letters_are_grouped_shown_retried_by_canary_and_discarded(database_url):
    async with world(database_url) as house:
        await house.app.submit_many("work", [{"dies": f"lamp {n} is out"} for n in range(4)])
        await house.app.submit("work", {"dies": "fire", "code": "F"})
        await drained(house)

        groups = await get(house, "/api/dead/groups")
        assert [(4, "lamp # is out"), (1, "fire")] == [
            (each["jobs"], each["message"]) for each in groups["groups"]
        ]
        lamps = groups["groups"][0]["fingerprint"]
        assert [4, 3, 2, 1] == await ids(house, "/api/dead", fingerprint=lamps)
        assert [5] == await ids(house, "/api/dead", code="F")
        letter = await get(house, "/api/dead/5")
        assert ("fire", "F") == (letter["message"], letter["code"])
        assert "no number of tries" in letter["why"]

        where = {"where": {"fingerprint": lamps}}
        dry = await do(house, "/api/dead/retry", {**where, "canary": 2, "dry_run": True})
        canary = await do(house, "/api/dead/retry", {**where, "canary": 2})
        assert (2, 2) == (dry["matching"], canary["moved"])
        assert [1, 1, 2, 2] == [(await house.app.get(n)).generation for n in (1, 2, 3, 4)]
        rest = await do(house, "/api/dead/retry", where)
        assert 2 == rest["moved"]
        one = await do(house, "/api/dead/5/retry")
        assert 2 == one["generation"]
        await drained(house)

        gone = await do(house, "/api/dead/discard", {**where, "why": "known"})
        assert 4 == gone["moved"]
        assert "dead" == (await do(house, "/api/dead/5/discard"))["state"]
        assert [] == await ids(house, "/api/dead")
        not_dead = await house.operator.post("/api/dead/retry", json={"ids": [1], "where": {}})
        assert (422, "bad_input") == code_of(not_dead)


async def test_only_what_is_dead_is_a_dead_letter(database_url):
    async with world(database_url) as house:
        await house.app.submit("count", 1)

        assert (404, "not_found") == code_of(await house.operator.get("/api/dead/1"))
        for verb in ("retry", "discard"):
            answer = await house.operator.post(f"/api/dead/1/{verb}")
            assert (409, "illegal_move") == code_of(answer)


# — gates, schedules, runners, events —


async def test_gates_are_listed_and_steered(database_url):
    async with world(database_url) as house:
        await house.app.pools.declare(
            "proxies", {"p1": {"password": "CANARY-1"}, "p2": "CANARY-2"}
        )
        await house.app.breakers.declare("shop/eu")
        await house.app.rates.set("maps", 5)

        admin = house.admin
        switched = await admin.post(
            "/api/pools/proxies/switch", json={"things": ["p1"], "on": False, "why": "slow"}
        )
        assert [1] == [each["on"] for each in switched.json()]
        things = await get(house, "/api/pools/proxies/things", limit=1)
        more = await get(house, "/api/pools/proxies/things", limit=1, cursor=things["next"])
        assert [("p1", "off"), ("p2", "on")] == [
            (each["name"], each["state"]) for each in things["items"] + more["items"]
        ]
        assert "CANARY" not in str(things) + str(more)
        free = await admin.post("/api/pools/proxies/free", json={"thing": "p2"})
        assert (404, "not_found") == code_of(free)  # nobody holds it
        assert 404 == (await house.viewer.get("/api/pools/none/things")).status_code

        opened = await do(house, "/api/breakers/shop/eu/open", {"why": "it burns"})
        closed = await do(house, "/api/breakers/shop/eu/close")
        assert ["open", "closed"] == [opened[0]["state"], closed[0]["state"]]

        rate = await admin.put(
            "/api/rates", json={"key": "maps", "per_second": 2.5, "burst": 4}
        )
        assert (2.5, 4) == (rate.json()["per_second"], rate.json()["burst"])
        assert ["maps"] == [each["key"] for each in (await get(house, "/api/rates"))["items"]]
        await admin.put("/api/limits", json={"key": "site:a", "cap": 2})
        [limit] = (await get(house, "/api/limits"))["items"]
        assert ("site:a", 2, True) == (limit["key"], limit["cap"], limit["by_hand"])
        for bad in (
            {"key": "site:a", "cap": 0},
            {"key": "site:a", "cap": -1},
            {"key": "", "cap": 1},
        ):
            assert 422 == code_of(await admin.put("/api/limits", json=bad))[0]  # row 35


async def test_a_schedule_is_run_paused_and_listed(database_url):
    async with world(database_url) as house:
        house.app.schedule("nightly", "count", cron="0 0 * * *", payload=4)

        made = await do(house, "/api/schedules/nightly/run", expected=201)
        paused = await do(house, "/api/schedules/nightly/pause")
        assert ("count", 4) == (made["kind"], made["payload"])
        assert paused["paused_at"] is not None
        assert (await do(house, "/api/schedules/nightly/unpause"))["paused_at"] is None
        [seen] = (await get(house, "/api/schedules"))["items"]
        assert ("nightly", "0 0 * * *") == (seen["name"], seen["cron"])
        assert (404, "not_found") == code_of(
            await house.operator.post("/api/schedules/x/pause")
        )


async def test_what_people_declare_is_listed_in_pages_too(database_url):
    names = ["B", "a/b", "a b", "\u00e1"]
    async with world(database_url) as house:
        for each in names:
            await house.app.pools.declare(each, {"p1": "x"})
            await house.app.breakers.declare(each)
            await house.app.rates.set(each, 5)
            house.app.schedule(each, "count", cron="0 0 * * *", payload=4)
        await house.app.submit("count", 1)  # and with it what the code declares
        for path, name in (
            ("/api/pools", "name"),
            ("/api/breakers", "name"),
            ("/api/rates", "key"),
            ("/api/schedules", "name"),
        ):
            seen, cursor = [], dict[str, str]()
            while True:
                page = await get(house, path, limit=3, **cursor)
                assert len(page["items"]) <= 3
                seen += [each[name] for each in page["items"]]
                if page["next"] is None:
                    break
                cursor = {"cursor": page["next"]}
            assert sorted(names) == seen, path
            whole = await get(house, path, limit=4)
            assert (4, None) == (len(whole["items"]), whole["next"]), path
            other = await house.viewer.get(path, params={"cursor": "WyJ4IiwxXQ"})
            assert (422, "bad_cursor") == code_of(other)


async def test_runners_are_listed(database_url):
    async with world(database_url) as house:
        assert [] == await get(house, "/api/runners")
        async with running(house.app, name="here", slots=7):
            [seen] = await eventually(lambda: get(house, "/api/runners"))
        assert ("here", 7, True) == (seen["name"], seen["slots"], seen["living"])
        assert [] == await get(house, "/api/runners")
        assert ["gone"] == [
            each["state"] for each in await get(house, "/api/runners", every=True)
        ]


async def test_whatever_somebody_did_is_in_the_audit_log_with_their_name(database_url):
    async with world(database_url) as house:
        await do(house, "/api/jobs", {"kind": "count", "payload": 1}, expected=201)
        await do(house, "/api/jobs/1/cancel")
        await do(house, "/api/jobs/1/retry", {"confirm": True})
        await house.admin.put("/api/limits", json={"key": "site:a", "cap": 2})

        olga = (await get(house, "/api/events", actor="Olga"))["items"]
        assert ["job.again", "job.canceled", "job.submitted"] == [each["verb"] for each in olga]
        page = await get(house, "/api/events", limit=1)
        assert "limit.set" == page["items"][0]["verb"]
        following = await get(house, "/api/events", limit=1, cursor=page["next"])
        assert "job.again" == following["items"][0]["verb"]
        since = olga[0]["at"]
        assert ["limit.set", "job.again"] == [
            each["verb"] for each in (await get(house, "/api/events", since=since))["items"]
        ]


async def test_row_40_a_table_calculates_nothing_when_it_is_opened(database_url):
    async with world(database_url) as house:
        await house.app.submit("count", -7, key="=HYPERLINK(1)", correlation="@sum, x")
        await house.app.cancel(1, actor="+55 11")

        jobs = await house.viewer.get("/api/jobs.csv")
        events = await house.viewer.get("/api/events.csv")

        assert "'=HYPERLINK(1)" in jobs.text
        assert ",=HYPERLINK" not in jobs.text
        assert '"\'@sum, x"' in jobs.text
        assert "'+55 11" in events.text
        assert jobs.text.startswith("id,kind,state")
        for answer in (jobs, events):
            assert "text/csv; charset=utf-8" == answer.headers["content-type"]
            assert answer.headers["content-disposition"].startswith("attachment;")


# — the same in Portuguese —


async def test_an_explanation_is_told_in_the_language_of_whoever_asks(database_url):
    async with world(database_url) as house:
        await house.app.submit("count", 1)

        answer = await house.viewer.get(
            "/api/jobs/1/explain", headers={"Accept-Language": "pt-BR"}
        )

        assert "nenhum executor" in answer.json()["why"]
