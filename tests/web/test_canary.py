"""E27 over the API: whatever is done with a secret, no answer, event, log line or row shows it."""

import io
from typing import Any

import httpx2

from retoma import Context, Permanent
from retoma.engine.rules.states import State
from retoma.secret import Secret
from retoma.vault import SecretSlot, Vault
from tests.engine.aids import AT_ONCE
from tests.test_canary import CANARY, dump, hits, told  # noqa: F401 — a fixture of that room
from tests.web.aids import ROOT_KEY, World, client, world

PLACE = SecretSlot("workers", "api_key", "1")
EVERYWHERE = (  # what a viewer may read once a job has died of its secret
    *("/api/jobs", "/api/jobs/1", "/api/jobs/1/events", "/api/jobs/1/steps"),
    *("/api/jobs/1/attempts", "/api/jobs/1/explain", "/api/jobs/1/evidence"),
    *("/api/dead", "/api/dead/1", "/api/dead/groups", "/api/events", "/api/events.csv"),
    *("/api/jobs.csv", "/api/runners", "/api/pools", "/api/pools/proxies/things"),
    *("/api/breakers", "/api/jobs/counts", "/api/costs", "/api/jobs/1/costs", "/api/budgets"),
    *("/metrics", "/readyz", "/openapi.json"),
)
ADMINS = ("/api/keys", "/api/people", "/api/sessions")


async def test_e27_no_canary_in_answers_events_logs_or_rows(database_url, told: io.StringIO):  # noqa: F811
    async with world(database_url) as house:
        await spill(house)
        await house.app.run(until_idle=True)
        assert {State.DEAD: 1} == await house.app.insights.counts()
        answers = [await house.viewer.get(path) for path in EVERYWHERE]
        answers += [await house.admin.get(path) for path in (*EVERYWHERE, *ADMINS)]
        answers += await refused(house)

    assert [] == [str(each.url) for each in answers if each.status_code == 404]
    assert [] == [str(each.url) for each in answers if hits(each.text + str(each.headers))]
    assert "***" in told.getvalue()
    assert [] == hits(told.getvalue())
    assert [] == hits(dump(database_url))


async def test_e27_what_opens_a_door_is_shown_once_and_kept_nowhere(database_url, told):  # noqa: F811
    async with world(database_url) as house:
        key = (
            await house.admin.post("/api/keys", json={"person": "Rui", "role": "viewer"})
        ).json()
        link = (
            await house.admin.post("/api/people", json={"person": "Bia", "role": "viewer"})
        ).json()["link"]
        rui = client(house.site, key["token"])
        await rui.get("/api/jobs", headers={"User-Agent": key["token"]})
        browser = client(house.site)
        await browser.post(link, headers={"Origin": "http://127.0.0.1", "User-Agent": link})
        cookie = browser.cookies["retoma"]
        again = [await house.admin.get(path) for path in (*EVERYWHERE, *ADMINS)]

    secrets = [each.rpartition("_")[2] for each in (key["token"], link, cookie)]
    seen = told.getvalue() + dump(database_url) + "".join(each.text for each in again)
    assert [] == [each for each in (*secrets, ROOT_KEY) if each in seen]


async def spill(house: World) -> None:
    """A job that dies of its secret, a thing that is one, a breaker that was opened for one."""
    vault = Vault(await house.app.database(), house.app.ids)
    await vault.put(PLACE, Secret(CANARY), actor="Ana")
    await house.app.pools.declare("proxies", {"p1": {"url": "http://x:1"}})

    @house.app.job(retry=AT_ONCE)
    async def spills(ctx: Context) -> None:
        secret = await vault.get(PLACE)
        assert secret is not None
        plain = secret.reveal()
        await ctx.progress(0.5, note=f"asked with {plain}")
        await ctx.attach("request.txt", "without what it carried")
        ctx.log.warning("asked", key=plain, headers={"authorization": plain})
        raise Permanent(f"401 for {plain!r}", code="SHOP") from ValueError(plain)

    await house.app.submit("spills")


async def refused(house: World) -> list[httpx2.Response]:
    """Requests that carry one where it does not belong: whatever is said, it is not repeated."""
    secret = "CANARY" + "x" * 40
    body: dict[str, Any] = {"kind": "count", "payload": 1}
    return [
        await house.nobody.get("/api/jobs", headers={"Authorization": f"Bearer {secret}"}),
        await house.nobody.get("/api/jobs", headers={"Cookie": f"retoma={secret}"}),
        await house.viewer.get("/api/jobs", params={"api_key": secret}),
        await house.operator.post("/api/jobs", json={**body, "payload": {"password": secret}}),
        await house.operator.post("/api/jobs", content=f'{{"kind": "{secret}'.encode()),
        await house.nobody.post(f"/enter/{secret}", headers={"Origin": "http://127.0.0.1"}),
    ]
