"""Rows 10 and 11: what is created twice under one Idempotency-Key was created once (E8, H-X8)."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from retoma import Retoma
from retoma.bootstrap import install_applications
from retoma.db import adhoc
from retoma.engine.rules.states import State
from retoma.engine.store.answers import ABANDONED
from retoma.manifest import APPLICATIONS
from retoma.testing import FakeClock
from retoma.web import build_site
from tests.engine.aids import rows
from tests.web.aids import World, client, code_of, set_up, world
from tests.web.test_sign_in import FORM, signed_in

SUBMIT = {"kind": "count", "payload": 1}


def under(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


async def test_row_10_fifty_at_once_are_one_201_and_49_times_200(database_url):
    async with world(database_url) as house:
        answers = await asyncio.gather(
            *(
                house.operator.post("/api/jobs", json=SUBMIT, headers=under("k"))
                for _ in range(50)
            )
        )

        assert [200] * 49 + [201] == sorted(each.status_code for each in answers)
        assert 1 == len({each.text for each in answers})
        assert {"/api/jobs/1"} == {each.headers["location"] for each in answers}
        assert {State.WAITING: 1} == await house.app.insights.counts()
        told = await house.admin.get("/api/events?verb=job.submitted")
        assert 1 == len(told.json()["items"])


async def test_row_11_the_same_key_with_another_body_is_refused(database_url):
    async with world(database_url) as house:
        await house.operator.post("/api/jobs", json=SUBMIT, headers=under("k"))

        other = await house.operator.post(
            "/api/jobs", json={**SUBMIT, "payload": 2}, headers=under("k")
        )
        elsewhere = await house.operator.post(
            "/api/batches", json={"kind": "count", "payloads": [1]}, headers=under("k")
        )
        somebody_else = await house.admin.post("/api/jobs", json=SUBMIT, headers=under("k"))

        assert (409, "idempotency_mismatch") == code_of(other)
        assert (409, "idempotency_mismatch") == code_of(elsewhere)
        assert 201 == somebody_else.status_code
        assert 2 == len(await house.app.jobs())


async def test_the_key_of_a_job_is_its_own(database_url):
    """Without the header: the job's key finds the job, and says that it was there."""
    async with world(database_url) as house:
        first = await house.operator.post("/api/jobs", json={**SUBMIT, "key": "n-1"})
        again = await house.operator.post("/api/jobs", json={**SUBMIT, "key": "n-1"})
        other = await house.operator.post(
            "/api/jobs", json={**SUBMIT, "payload": 3, "key": "n-1"}
        )

        assert (201, 200) == (first.status_code, again.status_code)
        assert first.json()["id"] == again.json()["id"]
        assert (409, "idempotency_mismatch") == code_of(other)


async def test_what_was_refused_may_be_asked_again_under_its_key(database_url):
    async with world(database_url) as house:
        refused = await house.operator.post(
            "/api/jobs", json={**SUBMIT, "payload": "x"}, headers=under("k")
        )
        done = await house.operator.post("/api/jobs", json=SUBMIT, headers=under("k"))

        assert (422, 201) == (refused.status_code, done.status_code)


async def test_everything_that_creates_takes_a_key(database_url):
    async with world(database_url) as house:
        house.app.schedule("nightly", "count", cron="0 0 * * *", payload=1)

        for path, body in CREATES:
            answers = [
                await house.admin.post(
                    path, json=body, headers=under(f"k {path}".replace(" ", "-"))
                )
                for _ in range(2)
            ]
            assert (201, 200) == tuple(each.status_code for each in answers), path
            first, again = (each.json() for each in answers)
            # What opens a door is shown once, and kept nowhere.
            hidden = {name: None for name in ("token", "link") if name in first}
            assert {**first, **hidden} == again, path

        assert 4 == sum((await house.app.insights.counts()).values())
        database = await house.app.database()
        kept = str(await rows(database, "SELECT answer FROM answers"))
        assert "retoma_link_" not in kept
        assert 'token":"retoma' not in kept


CREATES = (
    ("/api/jobs", SUBMIT),
    ("/api/batches", {"kind": "count", "payloads": [1, 2]}),
    ("/api/schedules/nightly/run", None),
    ("/api/keys", {"person": "Rui", "role": "viewer"}),
    ("/api/people", {"person": "Bia", "role": "viewer"}),
)


def creating(house: World) -> set[str]:
    """What answers 201, by its own account."""
    paths = house.site.openapi()["paths"]
    return {
        path
        for path, item in paths.items()
        if "201" in item.get("post", {}).get("responses", {})
    }


async def test_nothing_else_creates(database_url):
    async with world(database_url) as house:
        known = {path.replace("nightly", "{name}") for path, _ in CREATES}

        assert known | {"/api/keys/{key}/rotate"} == creating(house)
        for path in creating(house):
            names = [
                each["name"]
                for each in house.site.openapi()["paths"][path]["post"]["parameters"]
            ]
            assert "Idempotency-Key" in names, path


async def test_a_key_that_cannot_be_one_is_refused(database_url):
    async with world(database_url) as house:
        for key in ("x" * 201, "with space"):
            answer = await house.operator.post("/api/jobs", json=SUBMIT, headers=under(key))
            assert (422, "bad_input") == code_of(answer), key
        assert [] == await house.app.jobs()


async def test_a_verb_under_a_key_is_answered_as_the_first_time(database_url):
    async with world(database_url) as house:
        job = await house.app.submit("work", {"dies": "no"})
        await house.app.run(until_idle=True)

        def retried(key: str, **body: Any) -> Awaitable[httpx2.Response]:
            path = f"/api/jobs/{job.id}/retry"
            return house.operator.post(path, json=body, headers=under(key))

        answers = await asyncio.gather(*(retried("k") for _ in range(10)))
        other = await retried("k", fresh=True)
        anew = await retried("l")

        assert {200} == {each.status_code for each in answers}
        assert 1 == len({each.text for each in answers})
        assert 2 == answers[0].json()["generation"]
        assert (409, "idempotency_mismatch") == code_of(other)
        assert (409, "illegal_move") == code_of(anew)


async def test_a_verb_that_was_refused_may_be_asked_again_under_its_key(database_url):
    async with world(database_url) as house:
        job = await house.app.submit("work", {"dies": "no"})

        async def retried() -> int:
            path = f"/api/jobs/{job.id}/retry"
            answer = await house.operator.post(path, json={}, headers=under("k"))
            return int(answer.status_code)

        early = await retried()
        await house.app.run(until_idle=True)

        assert (409, 200) == (early, await retried())


async def test_a_key_of_a_verb_that_cannot_be_one_is_refused(database_url):
    async with world(database_url) as house:
        job = await house.app.submit("count", 1)
        answer = await house.operator.post(f"/api/jobs/{job.id}/cancel", headers=under("x y"))

        assert (422, "bad_input") == code_of(answer)
        assert "header.Idempotency-Key" == answer.json()["errors"][0]["path"]


def test_every_post_of_every_application_takes_a_key(tmp_path):
    """Whoever may post names an Idempotency-Key; those whom anybody may ask create nothing."""
    url = f"sqlite:///{tmp_path}/none.db"
    chosen = set_up(url, applications=",".join(APPLICATIONS))
    app = Retoma(url)
    paths = build_site(app, chosen, install_applications(app, chosen)).openapi()["paths"]
    without = [
        path
        for path, item in paths.items()
        if "post" in item and item["post"]["x-role"] != "anybody"
        if "Idempotency-Key" not in [each["name"] for each in item["post"]["parameters"]]
    ]

    assert [] == without
    assert 60 < sum("post" in item for item in paths.values())
    # A repeat under the same key answers 200 where the first answered 201.
    created = {
        path: item["post"]["responses"] for path, item in paths.items() if "post" in item
    }
    assert [] == [
        path for path, codes in created.items() if "201" in codes and "200" not in codes
    ]


async def test_a_secret_that_a_page_shows_once_is_kept_nowhere(database_url, test_clock):
    """Two clicks make one key, and both are shown it, also where the second is read when the first was
    answered: a busy site gets to it late. Asked half a minute later it is another."""
    clock = FakeClock()
    async with world(database_url, clock=clock) as house:
        browser, csrf = await signed_in(house, "admin")
        form = {"csrf": csrf, "person": "Rui", "role": "viewer"}
        headers = {**FORM, "HX-Request": "true", "Idempotency-Key": "k"}

        def made() -> Awaitable[httpx2.Response]:
            return browser.post("/keys/create", data=form, headers=headers)

        first, second = await asyncio.gather(made(), made())
        clock.advance(20)
        late = await made()
        clock.advance(31)
        test_clock.jump(31)
        later = await made()

        shown = [
            re.findall(r"retoma_[0-9a-f]{16}_\w+", each.text) for each in (first, second, late)
        ]
        assert 1 == len(shown[0])
        assert shown[0] == shown[1] == shown[2]
        assert shown[0] != re.findall(r"retoma_[0-9a-f]{16}_\w+", later.text)
        database = await house.app.database()
        kept = str(await rows(database, "SELECT key, what, hash, answer FROM answers"))
        assert "/keys/create" in kept
        assert not any(each in kept for each in (*shown[0], "retoma_", "<"))
        await browser.aclose()


# — two processes on one database —

CREATE = "/keys/create"


@asynccontextmanager
async def two_sites(url: str) -> AsyncIterator[tuple[World, Callable[..., Any]]]:
    """One person whose presses of one button come to two sites in turn: the second of what is returned."""
    async with world(url) as first, world(url) as second:
        browser, csrf = await signed_in(first, "admin")
        other = client(second.site, cookies=dict(browser.cookies))
        headers = {**FORM, "HX-Request": "true", "Idempotency-Key": "k"}

        def press(site: int, **form: str) -> Awaitable[httpx2.Response]:
            given = {"csrf": csrf, "person": "Rui", "role": "viewer", **form}
            return (browser, other)[site].post(CREATE, data=given, headers=headers)

        yield first, press
        await browser.aclose()
        await other.aclose()


async def keys_of(house: World, person: str = "Rui") -> int:
    listed = (await house.admin.get("/api/keys")).json()["items"]
    return sum(each["person"] == person for each in listed)


async def test_a_button_pressed_twice_is_done_once_whichever_process_it_comes_to(database_url):
    """What it shows may be a secret: only the process that did it has that. The other leaves its page as it is."""
    async with two_sites(database_url) as (house, press):
        answers = await asyncio.gather(*(press(site % 2) for site in range(8)))
        late = [await press(0), await press(1)]

        assert 1 == await keys_of(house)
        shown = {each.text for each in answers if each.status_code == 200}
        assert 1 == len(shown)
        assert {200, 204} == {each.status_code for each in answers}
        assert {200, 204} == {each.status_code for each in late}
        assert {""} == {each.text for each in (*answers, *late) if each.status_code == 204}


async def test_a_form_that_was_refused_may_be_sent_again_to_another_process(database_url):
    async with two_sites(database_url) as (house, press):
        refused = await press(0, role="king")
        other = await press(1)

        assert 422 == refused.status_code
        assert 200 == other.status_code
        assert 1 == await keys_of(house)


async def test_another_form_under_the_same_key_is_refused_by_another_process(database_url):
    async with two_sites(database_url) as (house, press):
        first = await press(0)
        other = await press(1, person="Ada")

        assert [200, 409] == [first.status_code, other.status_code]
        assert 0 == await keys_of(house, "Ada")


async def test_a_press_whose_process_died_is_done_by_another_after_a_while(
    database_url, test_clock
):
    async with two_sites(database_url) as (house, press):
        database = await house.app.database()
        await press(0)
        await database.write(
            lambda tx: tx.run(adhoc("UPDATE answers SET answer = NULL")), verb="die"
        )
        waiting = asyncio.ensure_future(press(1))
        await asyncio.sleep(0.5)

        assert not waiting.done()
        test_clock.jump(ABANDONED + 1)
        assert 200 == (await waiting).status_code
        assert 2 == await keys_of(house)
