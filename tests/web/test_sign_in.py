"""Programs bring keys, browsers bring cookies; what a browser posts must come from a page of ours (§5.1, §5.2)."""

from typing import Protocol

import httpx2
import pytest
from fastapi import APIRouter, FastAPI

from retoma import Retoma
from retoma.access import Role
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput
from retoma.web import Anybody, Operator, Viewer, build_site, router
from retoma.web.pages import ROUTERS as PAGES
from retoma.web.route import Route
from retoma.web.site import ROUTERS, check_roles
from tests.web.aids import BASE, client, code_of, set_up, world

FORM = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
CSRF_ROUTE = "/api/jobs/1/cancel"


class Doors(Protocol):
    """A site, and somebody who may invite others into it."""

    @property
    def site(self) -> FastAPI: ...

    @property
    def admin(self) -> httpx2.AsyncClient: ...


async def signed_in(house: Doors, role: str = "operator") -> tuple[httpx2.AsyncClient, str]:
    """A browser, and the token its pages know."""
    wanted = {"person": "Bia", "role": role}
    link = (await house.admin.post("/api/people", json=wanted)).json()["link"]
    browser = client(house.site)
    answer = await browser.post(link, headers=FORM)
    assert (303, "/") == (answer.status_code, answer.headers["location"])
    return browser, (await browser.get("/api/me")).json()["csrf"]


async def test_a_link_signs_in_once_and_the_cookie_is_kept_from_scripts(database_url):
    async with world(database_url) as house:
        wanted = {"person": "Bia", "role": "operator"}
        link = (await house.admin.post("/api/people", json=wanted)).json()["link"]
        assert link.startswith(f"{BASE}:80/enter/retoma_link_")
        path = link.removeprefix(f"{BASE}:80")
        browser = client(house.site)

        looked = [await browser.get(path) for _ in range(2)]
        entered = await browser.post(path, headers=FORM)
        again = await client(house.site).post(path, headers=FORM)

        assert {200} == {each.status_code for each in looked}
        cookie = entered.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=lax", "path=/"))
        assert not any(word in cookie for word in ("domain", "max-age", "expires"))
        me = (await browser.get("/api/me")).json()
        assert ("Bia", "operator") == (me["name"], me["role"])
        assert (401, "sign_in") == code_of(again)


async def test_behind_tls_the_cookie_is_for_this_host_over_tls_alone(database_url):
    async with world(database_url, public_url="https://retoma.example.org") as house:
        wanted = {"person": "Bia", "role": "viewer"}
        link = (await house.admin.post("/api/people", json=wanted)).json()["link"]
        origin = "https://retoma.example.org"
        assert link.startswith(f"{origin}/enter/")

        answer = await client(house.site).post(
            link.removeprefix(origin),
            headers={**FORM, "Origin": origin, "Host": "retoma.example.org"},
        )

        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-retoma=")
        assert "secure" in cookie.lower()


FORGED: tuple[dict[str, str], ...] = (
    {},
    {"Origin": BASE},
    {"X-CSRF-Token": "TOKEN"},
    {"Origin": "https://evil.example", "X-CSRF-Token": "TOKEN"},
    {"Origin": "null", "X-CSRF-Token": "TOKEN"},
    {"Origin": BASE, "Sec-Fetch-Site": "cross-site", "X-CSRF-Token": "TOKEN"},
    {"Origin": BASE, "Sec-Fetch-Site": "same-site", "X-CSRF-Token": "TOKEN"},
    {"Sec-Fetch-Site": "same-origin", "X-CSRF-Token": "TOKEN"},
    {**FORM, "X-CSRF-Token": "wrong"},
    {**FORM, "X-CSRF-Token": ""},
)


async def test_row_29_what_did_not_come_from_a_page_of_ours_changes_nothing(database_url):
    async with world(database_url) as house:
        await house.app.submit("count", 1)
        browser, token = await signed_in(house)

        for forged in FORGED:
            headers = {name: value.replace("TOKEN", token) for name, value in forged.items()}
            answer = await browser.post(CSRF_ROUTE, headers=headers)
            assert (403, "csrf") == code_of(answer), forged
        assert 1 == len(await house.app.jobs(state="waiting"))

        answer = await browser.post(CSRF_ROUTE, headers={**FORM, "X-CSRF-Token": token})
        assert 200 == answer.status_code
        assert "Bia" == (await house.app.events(1))[-1].actor


async def test_row_29_a_form_brings_its_token_as_a_field(database_url):
    async with world(database_url) as house:
        browser, token = await signed_in(house)

        without = await browser.post("/leave", headers=FORM, data={"a": "b"})
        foreign = await browser.post("/leave", headers=FORM, data={"csrf": "x"})
        left = await browser.post("/leave", headers=FORM, data={"csrf": token})

        assert [(403, "csrf"), (403, "csrf")] == [code_of(without), code_of(foreign)]
        assert 204 == left.status_code
        assert (
            401
            == (
                await client(house.site, cookies=dict(browser.cookies)).get("/api/me")
            ).status_code
        )


async def test_row_29_nobody_is_signed_in_from_another_site(database_url):
    async with world(database_url) as house:
        wanted = {"person": "Bia", "role": "admin"}
        link = (await house.admin.post("/api/people", json=wanted)).json()["link"]

        for headers in ({}, {"Origin": "https://evil.example"}):
            assert (403, "csrf") == code_of(await house.nobody.post(link, headers=headers))
        assert 303 == (await house.nobody.post(link, headers=FORM)).status_code


async def test_a_session_is_listed_and_ended_by_an_admin(database_url):
    async with world(database_url) as house:
        browser, _ = await signed_in(house, "viewer")

        [session] = (await house.admin.get("/api/sessions")).json()["items"]
        assert ("Bia", "viewer") == (session["person"], session["role"])
        assert 204 == (await house.admin.delete(f"/api/sessions/{session['id']}")).status_code
        assert 204 == (await house.admin.delete(f"/api/sessions/{session['id']}")).status_code

        assert (401, "sign_in") == code_of(await browser.get("/api/me"))
        told = (await house.admin.get("/api/events?verb=session.ended")).json()["items"]
        assert ["RETOMA_API_KEY"] == [each["actor"] for each in told]


async def test_keys_are_made_listed_rotated_and_revoked(database_url):
    async with world(database_url) as house:
        made = (
            await house.admin.post(
                "/api/keys",
                json={"person": "Rui", "role": "operator", "label": "ci", "expires": "30d"},
            )
        ).json()
        old = client(house.site, made["token"])
        rotated = await house.admin.post(
            f"/api/keys/{made['id']}/rotate", json={"overlap": "1h"}
        )
        new = client(house.site, rotated.json()["token"])

        assert ["Rui", "Rui"] == [
            (await each.get("/api/me")).json()["name"] for each in (old, new)
        ]
        await house.admin.post(f"/api/keys/{made['id']}/revoke")
        assert [401, 200] == [(await each.get("/api/me")).status_code for each in (old, new)]
        listed = (await house.admin.get("/api/keys?every=true")).json()["items"]
        [key] = [each for each in listed if each["id"] == made["id"]]
        assert ("ci", False, rotated.json()["id"]) == (
            key["label"],
            key["good"],
            key["replaced_by"],
        )
        assert "token" not in key
        assert made["token"] not in str(listed)
        assert 204 == (await house.admin.delete("/api/people/Rui")).status_code
        assert 401 == (await new.get("/api/me")).status_code
        assert "Rui" not in [
            each["name"] for each in (await house.admin.get("/api/people")).json()["items"]
        ]


async def test_both_headers_are_heard_and_a_key_is_no_cookie(database_url):
    async with world(database_url) as house:
        key = house.viewer.headers["authorization"].removeprefix("Bearer ")

        by_header = await house.nobody.get("/api/me", headers={"x-api-key": key})
        by_scheme = await house.nobody.get(
            "/api/me", headers={"authorization": f"bearer {key}"}
        )
        by_cookie = await house.nobody.get("/api/me", headers={"cookie": f"retoma={key}"})

        assert ["Vera", "Vera"] == [each.json()["name"] for each in (by_header, by_scheme)]
        assert 401 == by_cookie.status_code


async def test_row_36_a_clock_an_hour_off_on_this_host_lets_nobody_in_or_out(
    database_url, test_clock
):
    """What is good when, the database says: keys and sessions know nothing of this host's time."""

    class Wrong(Clock):
        def wall(self) -> float:
            return super().wall() - 3600

    async with world(database_url, clock=Wrong()) as house:
        test_clock.jump(0)
        wanted = {"person": "Eve", "role": "viewer", "expires": "30m"}
        eve = client(
            house.site, (await house.admin.post("/api/keys", json=wanted)).json()["token"]
        )
        browser, _ = await signed_in(house)

        assert [200, 200] == [
            (await each.get("/api/me")).status_code for each in (eve, browser)
        ]
        test_clock.jump(1900)
        assert [401, 200] == [
            (await each.get("/api/me")).status_code for each in (eve, browser)
        ]


# — roles —


def site_with(*routers: APIRouter) -> FastAPI:
    return build_site(Retoma("sqlite:///none.db"), set_up("sqlite:///none.db"), routers=routers)


def test_every_route_declares_one_role():
    site = site_with()

    check_roles(site)
    declared = [
        (route.declared, route.path)
        for each in (*ROUTERS, *PAGES)
        for route in each.routes
        if isinstance(route, Route)
    ]
    open_to_all = {path for (role,), path in declared if role is None}
    doors = {"/enter/{link}", "/sign-in", "/preferences", "/static/{name:path}"}
    assert {"/livez", "/readyz", *doors} == open_to_all
    assert 60 < len(declared)


def test_whatever_changes_something_is_not_for_viewers():
    for each in (*ROUTERS, *PAGES):
        for route in each.routes:
            assert isinstance(route, Route)
            [role] = route.declared
            if (route.methods or set()) & {
                "POST",
                "PUT",
                "PATCH",
                "DELETE",
            } and role is not None:
                assert role is not Role.VIEWER or route.path in ("/leave", "/sign-out"), (
                    route.path
                )


def test_a_route_without_a_role_is_not_served():
    plain, ours, doubled = APIRouter(), router("ours"), router("doubled")

    @plain.get("/api/plain")
    async def without_our_class() -> None: ...

    @ours.get("/api/ours")
    async def without_a_role() -> None: ...

    @doubled.get("/api/doubled")
    async def with_two(one: Viewer, other: Operator) -> None: ...

    for each in (plain, ours, doubled):
        with pytest.raises(BadInput, match="role"):
            site_with(each)


def test_a_route_of_an_application_is_guarded_like_our_own():
    theirs = router("theirs")

    @theirs.get("/api/theirs", dependencies=[Anybody])
    async def anybody() -> None: ...

    assert "/api/theirs" in site_with(theirs).openapi()["paths"]
