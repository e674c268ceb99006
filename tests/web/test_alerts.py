"""`/api/alerts`: what is in force is seen by everybody who may look; a hand on it is an operator's."""

from retoma.db import Transaction
from retoma.engine.store import alerts
from retoma.engine.store.alerts import Cause, Rule
from tests.web.aids import World, code_of, world
from tests.web.test_sign_in import FORM, signed_in


async def raise_and_close(house: World) -> None:
    """Three alerts, of which the first is closed."""

    def change(tx: Transaction) -> None:
        for n, name in enumerate(("one", "two", "<b>three</b>"), start=1):
            alerts.raise_alert(tx, Cause(Rule.DEAD, name), {"jobs": n})
        alerts.close_alert(tx, Cause(Rule.DEAD, "one"))

    await (await house.app.database()).write(change, verb="test")


async def test_e29_alerts_come_in_pages_and_say_what_they_mean(database_url):
    async with world(database_url) as house:
        await raise_and_close(house)
        first = (await house.viewer.get("/api/alerts?limit=2")).json()
        rest = (await house.viewer.get(f"/api/alerts?limit=2&cursor={first['next']}")).json()
        force = (await house.viewer.get("/api/alerts?in_force=true")).json()

        assert ["<b>three</b>", "two"] == [each["subject"] for each in first["items"]]
        assert [("one", None)] == [(each["subject"], rest["next"]) for each in rest["items"]]
        assert [3, 2] == [each["id"] for each in force["items"]]
        assert "jobs of two became dead letters" == force["items"][1]["text"]
        assert ("DeadLetters", "warning") == tuple(
            force["items"][1][name] for name in ("rule", "severity")
        )
        foreign = await house.viewer.get(f"/api/alerts?in_force=true&cursor={first['next']}")
        assert (422, "bad_cursor") == code_of(foreign)


async def test_e29_who_acknowledges_and_who_silences_is_known(database_url):
    async with world(database_url) as house:
        await raise_and_close(house)
        known = await house.operator.post("/api/alerts/2/acknowledge")
        again = await house.admin.post("/api/alerts/2/acknowledge")
        silent = await house.operator.post("/api/alerts/2/silence", json={"lasting": "2h"})

        assert ["Olga", "Olga"] == [each.json()["acknowledged_by"] for each in (known, again)]
        assert (True, "Olga") == (silent.json()["silent"], silent.json()["silenced_by"])
        told = (await house.viewer.get("/api/events?actor=Olga")).json()["items"]
        assert ["alert.silenced", "alert.acknowledged"] == [each["verb"] for each in told]


REFUSED: tuple[tuple[str, dict[str, object] | None, tuple[int, str]], ...] = (
    ("/api/alerts/1/acknowledge", None, (409, "illegal_move")),
    ("/api/alerts/1/silence", {"lasting": "2h"}, (409, "illegal_move")),
    ("/api/alerts/9/acknowledge", None, (404, "not_found")),
    ("/api/alerts/0/acknowledge", None, (422, "bad_input")),
    ("/api/alerts/2/silence", {"lasting": "a year"}, (422, "bad_input")),
    ("/api/alerts/2/silence", {"lasting": "400d"}, (422, "bad_input")),
    ("/api/alerts/2/silence", {"lasting": "2h", "more": 1}, (422, "bad_input")),
    ("/api/alerts/2/silence", {}, (422, "bad_input")),
)


async def test_e29_what_cannot_be_is_refused_and_changes_nothing(database_url):
    async with world(database_url) as house:
        await raise_and_close(house)
        before = (await house.viewer.get("/api/alerts")).json()
        for path, body, refused in REFUSED:
            assert refused == code_of(await house.operator.post(path, json=body)), path
        for nobody in ("acknowledge", "silence"):
            asked = await house.viewer.post(f"/api/alerts/2/{nobody}", json={"lasting": "1h"})
            assert (403, "not_allowed") == code_of(asked)
        assert before == (await house.viewer.get("/api/alerts")).json()


async def test_e29_the_board_shows_what_is_in_force_as_text(database_url):
    async with world(database_url) as house:
        assert 'id="board-alerts" class="card" hidden' in (await house.viewer.get("/")).text
        await raise_and_close(house)
        await house.operator.post("/api/alerts/2/acknowledge")
        shown = (await house.viewer.get("/")).text

        assert 'id="board-alerts" class="card">' in shown
        assert (
            '<a class="message" href="/dead?kind=two">jobs of two became dead letters' in shown
        )
        assert "jobs of one became" not in shown, "it is closed"
        assert "&lt;b&gt;three&lt;/b&gt;" in shown
        assert ">Olga</span>" in shown


async def test_e29_an_alert_is_answered_where_it_is_shown(database_url):
    async with world(database_url) as house:
        await raise_and_close(house)
        browser, csrf = await signed_in(house)
        board = (await browser.get("/")).text
        said = [
            await browser.post(
                f"/alerts/{verb}", data={"csrf": csrf, "alert": alert}, headers=FORM
            )
            for verb, alert in (("acknowledge", "2"), ("silence", "2"), ("silence", "x"))
        ]
        now = (await browser.get("/")).text
        await browser.aclose()
        theirs = (await house.viewer.get("/")).text

        assert [303, 303, 422] == [answer.status_code for answer in said]
        assert (2, 2) == (
            board.count('form="do-acknowledge"'),
            board.count('form="do-silence"'),
        )
        assert (1, 1) == (now.count('form="do-acknowledge"'), now.count('form="do-silence"'))
        assert ">Bia</span>" in now
        assert "do-silence" not in theirs, "who only looks has no button"
        told = (await house.viewer.get("/api/events?actor=Bia")).json()["items"]
        assert {"alert.silenced", "alert.acknowledged"} <= {each["verb"] for each in told}
