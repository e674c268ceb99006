"""Missions as people handle them: looked for, done again, deleted; their log outlives them."""

from tests.apps.ads.test_pages import site_of
from tests.web.aids import code_of
from tests.web.test_more_pages import posted, told
from tests.web.test_sign_in import signed_in

DAY = {"date_start": "2025-01-15", "date_end": "2025-01-16", "media_type": "video"}
ORDERS = "/ads/missions/orders"


async def test_missions_are_looked_for_by_whatever_they_are(database_url, tmp_path):
    wanted = (
        {**DAY, "languages": ["pt"]},
        {**DAY, "media_type": "image", "languages": ["pt", "en"]},
        {**DAY, "date_start": "2025-03-01", "date_end": "2025-03-05", "languages": ["es"]},
    )
    looked_for = {
        "language=pt": [2, 1],
        "language=en&media_type=image": [2],
        "media_type=video": [3, 1],
        "since=2025-01-17": [3],
        "since=2025-01-16&until=2025-01-16": [2, 1],
        "until=2025-01-14": [],
        "status=novo&since=2025-03-05": [3],
        "code=ERROR203": [],
    }
    async with site_of(database_url, tmp_path, proxies=0) as site:
        await site.operator.post("/api/missions", json={"missions": wanted})
        for query, numbers in looked_for.items():
            ids = [f"MIS-{n:06}" for n in numbers]
            found = (await site.viewer.get(f"/api/missions?{query}")).json()["items"]
            page = (await site.viewer.get(f"/ads/missions?{query}")).text
            assert ids == [each["id"] for each in found], query
            assert len(ids) == page.count('<tr id="mission-MIS-'), query

        first = (await site.viewer.get("/api/missions?language=pt&limit=1")).json()
        following = f"/api/missions?language=pt&limit=1&cursor={first['next']}"
        [second] = (await site.viewer.get(following)).json()["items"]
        assert "MIS-000001" == second["id"]
        other = await site.viewer.get(f"/api/missions?language=en&cursor={first['next']}")
        assert (422, "bad_cursor") == code_of(other)
        for bad in ("language=%25", "since=soon", "media_type=audio"):
            assert 422 == (await site.viewer.get(f"/api/missions?{bad}")).status_code
        assert 200 == (await site.viewer.get("/ads/missions?language=&since=")).status_code


async def test_a_deleted_mission_is_gone_and_its_log_is_not(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        house = site.house
        first, second, third = await house.add(3)
        await house.queue(first)

        both = {"missions": [second, first]}
        refused = await site.operator.post("/api/missions/delete", json=both)
        assert (409, "illegal_move") == code_of(refused)
        assert "novo" == (await house.mission(second))["status"]

        await house.cancel(first)
        assert 204 == (await site.operator.delete(f"/api/missions/{first}")).status_code
        assert 403 == (await site.viewer.delete(f"/api/missions/{second}")).status_code
        for path in (f"/api/missions/{first}", "/api/missions/MIS-999999"):
            assert (404, "not_found") == code_of(await site.operator.delete(path))
        assert (404, "not_found") == code_of(await site.viewer.get(f"/api/missions/{first}"))
        queued = await site.operator.post("/api/missions/queue", json={"missions": [first]})
        assert (404, "not_found") == code_of(queued)
        assert {second, third} == {
            id_ for (id_,) in await house.rows("SELECT id FROM missions")
        }

        log = (await site.viewer.get(f"/api/missions/{first}/timeline")).json()
        assert ["mission_queued", "mission_canceled"] == [each["event"] for each in log]
        assert ["mission_queued", "mission_canceled"] == await house.events(first)
        [line] = (await site.admin.get("/api/events?verb=ads.mission_deleted")).json()["items"]
        assert (first, "Olga") == (line["subject"], line["actor"])


async def test_on_the_pages_doing_it_again_is_asked_for_as_such(database_url, tmp_path):
    """H-61: whoever ticks a mission that has ended and says "queue" is asked what they mean."""
    async with site_of(database_url, tmp_path, proxies=0) as site:
        browser, csrf = await signed_in(site, "operator")
        [mission, other] = await site.house.add(2)
        told(await posted(browser, ORDERS, csrf, verb="queue", mission=mission))
        told(await posted(browser, ORDERS, csrf, verb="cancel", mission=mission))

        both = [other, mission]
        again = await posted(browser, ORDERS, csrf, verb="queue", mission=both)
        assert 409 == again.status_code
        assert "novo" == (await site.house.mission(other))["status"]
        told(await posted(browser, ORDERS, csrf, verb="again", mission=both))
        shown = (await site.viewer.get(f"/api/missions/{mission}")).json()
        assert ("queued", 2) == (shown["status"], shown["generation"])

        told(await posted(browser, ORDERS, csrf, verb="cancel", mission=mission))
        told(await posted(browser, ORDERS, csrf, verb="delete", mission=mission))
        gone = await site.viewer.get(f"/ads/missions/{mission}")
        assert 404 == gone.status_code
