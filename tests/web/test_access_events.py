"""What was done to people, keys and sessions is told to admins; everybody else sees what was done to work."""

from retoma.access import Role, is_of_access
from retoma.engine.query import AuditSearch
from tests.web.aids import client, code_of, world
from tests.web.test_request_body import browser

OF_ACCESS = {
    "authz_denied",
    "key.created",
    "key.revoked",
    "key.rotated",
    "person.added",
    "person.invited",
    "person.removed",
    "person.role",
    "session.begun",
    "session.ended",
}


async def everything_done(house) -> None:
    """Each verb of access once, and one of work."""
    made = (
        await house.admin.post("/api/keys", json={"person": "Eve", "role": "viewer"})
    ).json()
    new = await house.admin.post(f"/api/keys/{made['id']}/rotate", json={"overlap": "1h"})
    await house.admin.post(f"/api/keys/{new.json()['id']}/revoke")
    await browser(house, Role.VIEWER)
    access = await house.site.state.house.access()
    await access.invite("Bea viewer", Role.OPERATOR, "test")
    [session] = await access.sessions()
    await access.end_session(session.id, "test")
    await access.remove_person("Bea viewer", "test")
    await house.viewer.get("/api/keys")
    job = await house.app.submit("count", 1)
    await house.operator.post(f"/api/jobs/{job.id}/cancel")


async def test_events_of_access_are_told_to_admins_alone(database_url):
    async with world(database_url) as house:
        await everything_done(house)

        for who, is_admin in (
            (house.admin, True),
            (house.operator, False),
            (house.viewer, False),
        ):
            told = {each["verb"] for each in (await who.get("/api/events")).json()["items"]}
            table = (await who.get("/api/events.csv")).text
            page = (await who.get("/audit", headers={"Accept": "text/html"})).text
            asked = await who.get("/api/events?verb=key.revoked")
            drawn = await who.get("/live/audit", headers={"retoma-once": "1"})

            assert any(verb.startswith("job.") for verb in told)
            assert (OF_ACCESS if is_admin else set()) == {
                each for each in told if is_of_access(each)
            }
            assert is_admin == bool(asked.json()["items"])
            for text in (table, page, drawn.text):
                assert "job." in text
                assert is_admin == any(each in text for each in OF_ACCESS)


async def test_what_is_of_access_is_known_to_the_database_alike(database_url):
    """The statement and the code name the same verbs."""
    async with world(database_url) as house:
        await everything_done(house)
        whole = (await house.app.audit(AuditSearch(access=True), limit=200)).lines
        without = (await house.app.audit(AuditSearch(), limit=200)).lines

        assert [each for each in whole if not is_of_access(each.verb)] == without
        assert OF_ACCESS == {each.verb for each in whole if is_of_access(each.verb)}


async def test_what_somebody_is_denied_is_counted_in_one_line_a_minute(
    database_url, test_clock
):
    async with world(database_url) as house:
        for _ in range(3):
            await house.viewer.get("/api/keys")
        await house.viewer.get("/api/people")
        test_clock.jump(61)
        await house.viewer.get("/api/keys")

        told = (await house.admin.get("/api/events?verb=authz_denied")).json()["items"]

        assert [("GET /api/keys", 1), ("GET /api/people", 1), ("GET /api/keys", 3)] == [
            (each["subject"], each["details"]["count"]) for each in told
        ]


# — people —

LOOKS_ALIKE = (
    ("Оlga", "Cyrillic O before Latin letters"),  # noqa: RUF001
    ("оӏɡа", "all Cyrillic"),  # noqa: RUF001
    ("OLGA", "other case"),
    ("0lga", "a digit"),
    ("Ｏｌｇａ", "full width"),  # noqa: RUF001
    ("сӏі", "stands for the command line"),  # noqa: RUF001
)


async def test_a_name_that_looks_like_another_is_refused(database_url):
    async with world(database_url) as house:
        for name, why in LOOKS_ALIKE:
            wanted = {"person": name, "role": "viewer"}
            assert (422, "bad_input") == code_of(
                await house.admin.post("/api/keys", json=wanted)
            ), why
        for name in ("Olga", "Ольга", "José da Silva", "Jose da Silva", "大輔 Sato", "O. Lima"):
            wanted = {"person": name, "role": "viewer"}
            assert 201 == (await house.admin.post("/api/keys", json=wanted)).status_code, name


async def test_nobody_removes_themselves(database_url):
    async with world(database_url) as house:
        wanted = {"person": "Ada", "role": "admin"}
        token = (await house.admin.post("/api/keys", json=wanted)).json()["token"]
        ada = client(house.site, token)

        refused = await ada.delete("/api/people/Ada")
        assert (422, "bad_input") == code_of(refused)
        assert 200 == (await ada.get("/api/people")).status_code
        assert 204 == (await house.admin.delete("/api/people/Ada")).status_code


async def test_browsers_are_told_to_come_over_tls_where_people_do(database_url):
    for public, expected in (("https://retoma.example.org", True), (None, False)):
        async with world(database_url, public_url=public) as house:
            for path in ("/api/jobs", "/sign-in", "/nowhere"):
                answer = await house.nobody.get(path)
                assert expected == ("strict-transport-security" in answer.headers)
