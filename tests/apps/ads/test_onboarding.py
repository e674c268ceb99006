"""Many at once: a dry run tells what each line is, and only then are they added, all or none."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from retoma.apps.ads.generator import Pattern, generate, windows
from retoma.apps.ads.model import MediaType
from retoma.apps.ads.store.recurrence import days_before
from retoma.db import moment
from retoma.engine.rules.errors import BadInput
from tests.apps.ads.test_pages import site_of, text_of
from tests.apps.people import PT
from tests.web.aids import code_of
from tests.web.test_more_pages import posted, told
from tests.web.test_sign_in import signed_in

PASTED = """\
# from the vendor
one.example.org:8080:user:CANARY-one
user:CANARY-two@two.example.org:8081

user:CANARY-three@one.example.org:8080
proxy.example.com:8081:user:CANARY-four
three.example.org:99999:user:CANARY-five
"""
IMPORT = "/api/ads/import"


async def test_proxies_are_pasted_first_as_a_dry_run_then_in_one_go(database_url, tmp_path):
    async with site_of(database_url, tmp_path) as site:
        admin = site.admin

        dry = (await admin.post(f"{IMPORT}/proxies", json={"text": PASTED})).json()
        assert (2, 2, 1, []) == (dry["new"], dry["duplicate"], dry["wrong"], dry["ids"])
        assert [
            *((2, "new"), (3, "new"), (5, "duplicate"), (6, "duplicate"), (7, "wrong")),
        ] == [(each["line"], each["verdict"]) for each in dry["lines"]]
        assert ["is the same as line 2"] == dry["lines"][2]["why"]
        assert ["is the same as PRX-000001"] == dry["lines"][3]["why"]
        assert ["port: is more than 65535"] == dry["lines"][4]["why"]
        assert "CANARY" not in str(dry)

        body = {"text": PASTED, "dry_run": False}
        refused = await admin.post(f"{IMPORT}/proxies", json=body)
        assert (422, "bad_input") == code_of(refused)
        assert "line 7" == refused.json()["errors"][0]["path"]
        assert "CANARY" not in refused.text
        assert 1 == len(await site.house.rows("SELECT id FROM proxies"))

        body["text"] = PASTED.replace("99999", "9999")
        added = (await admin.post(f"{IMPORT}/proxies", json=body)).json()
        again = (await admin.post(f"{IMPORT}/proxies", json=body)).json()
        assert (3, []) == (len(added["ids"]), again["ids"])
        assert 5 == again["duplicate"]
        kept = await site.house.rows(
            "SELECT name, username, active FROM proxies WHERE id <> 'PRX-000001' ORDER BY id"
        )
        names = [f"{n}.example.org:{port}" for n, port in
                 (("one", 8080), ("two", 8081), ("three", 9999))]  # fmt: skip
        assert [(name, "user", True) for name in names] == [
            (name, user, bool(active)) for name, user, active in kept
        ]
        sealed = await site.house.rows("SELECT * FROM secrets")
        assert 4 == len(sealed)
        assert "CANARY" not in str(sealed)
        [line] = (await admin.get("/api/events?verb=ads.imported")).json()["items"]
        assert ("proxies", {"added": 3}) == (line["subject"], line["details"])


async def test_workers_writers_and_missions_by_their_columns(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        workers = (
            "name,url,api_key,storage_domain\n"
            "W1,http://127.0.0.1:1/,CANARY-1,127.0.0.1:2\n"
            "W2,http://127.0.0.1:1,CANARY-2,\n"
            "W3,http://169.254.169.254,CANARY-3,s.example.org\n"
            "W4,nonsense,CANARY-4,\n"
        )
        dry = (await site.admin.post(f"{IMPORT}/workers", json={"text": workers})).json()
        assert ["new", "duplicate", "wrong", "wrong"] == [
            each["verdict"] for each in dry["lines"]
        ]
        assert "CANARY" not in str(dry)
        good = {"text": "\n".join(workers.split("\n")[:2]), "dry_run": False, "test": True}
        assert ["WRK-000001"] == (await site.admin.post(f"{IMPORT}/workers", json=good)).json()[
            "ids"
        ]
        tested = await site.house.rows("SELECT count(*) FROM jobs WHERE kind = 'ads.health'")
        assert [(1,)] == tested

        missions = "2025-01-01;2025-01-02;video;pt en\n2025-01-01;2025-01-02;video;en pt"
        body = {"text": missions, "dry_run": False}
        made = (await site.operator.post(f"{IMPORT}/missions", json=body)).json()
        assert (["MIS-000001"], 1) == (made["ids"], made["duplicate"])

        for who, what in (("operator", "proxies"), ("viewer", "missions")):
            refused = await getattr(site, who).post(f"{IMPORT}/{what}", json={"text": "x"})
            assert (403, "not_allowed") == code_of(refused)
        for bad in ({"text": ""}, {"text": "h\n" * 1001}, {"text": "x", "more": 1}):
            assert 422 == (await site.admin.post(f"{IMPORT}/proxies", json=bad)).status_code
        assert 422 == (await site.admin.post(f"{IMPORT}/ads", json={"text": "x"})).status_code


async def test_on_the_page_nothing_that_was_pasted_comes_back(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        browser, csrf = await signed_in(site, "admin")
        form = {"what": "proxies", "text": PASTED}

        dry = await posted(browser, "/ads/import", csrf, verb="check", **form)
        assert 'hx-target="#import-result"' in dry.text
        assert "CANARY" not in dry.text
        assert [] == await site.house.rows("SELECT id FROM proxies")
        wrong = await posted(browser, "/ads/import", csrf, verb="apply", **form)
        assert 422 == wrong.status_code
        form["text"] = "one.example.org:8080:user:CANARY-one"
        done = await posted(browser, "/ads/import", csrf, verb="apply", **form)
        assert "CANARY" not in done.text
        assert 1 == len(await site.house.rows("SELECT id FROM proxies"))
        nothing = await posted(browser, "/ads/import", csrf, verb="check", what="x", text="y")
        assert 422 == nothing.status_code

        rule: dict[str, Any] = {
            "languages": "pt, en",
            "media_type": ["video", "image"],
            "days": "2",
        }
        days = {"date_start": "2025-01-01", "date_end": "2025-01-05"}
        many = told(await posted(browser, "/ads/generate", csrf, **rule, **days))
        assert "12" in many
        told(await posted(browser, "/ads/generate", csrf, verb="apply", **rule, **days))
        assert 12 == len(await site.house.rows("SELECT id FROM missions"))
        clock = {"name": "ontem", "cron": "0 6 * * *", "back": "1", "queue": "1"}
        told(await posted(browser, "/ads/recurrences", csrf, **rule, **clock))
        page = text_of(await browser.get("/ads/import", headers=PT))
        assert "ontem" in page
        assert "Conferir" in page
        told(await posted(browser, "/ads/recurrences/remove", csrf, name="ontem"))
        gone = await posted(browser, "/ads/recurrences/remove", csrf, name="ontem")
        assert 404 == gone.status_code


# — by rule —


def test_days_are_cut_into_windows():
    days = [date(2025, 1, n) for n in range(1, 6)]

    assert [(days[0], days[1]), (days[2], days[3]), (days[4], days[4])] == list(
        windows(days[0], days[4], 2)
    )


def test_every_language_and_media_type_once_and_not_too_many():
    pattern = Pattern(languages=("pt", "en", "pt"), media_types=(MediaType.ALL,))
    day = date(2025, 1, 1)

    assert [("pt",), ("en",)] == [each.languages for each in generate(day, day, pattern)]
    with pytest.raises(BadInput, match="1460 missions"):
        generate(day, date(2026, 12, 31), pattern)


async def test_generated_missions_are_made_once(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        body = {"date_start": "2025-01-01", "date_end": "2025-01-03", "languages": ["pt"]}
        ask = site.operator.post

        dry = (await ask("/api/ads/generate", json=body)).json()
        made = (await ask("/api/ads/generate", json={**body, "dry_run": False})).json()
        wider = {**body, "date_end": "2025-01-04", "dry_run": False, "queue": True}
        more = (await ask("/api/ads/generate", json=wider)).json()

        assert (3, 3, []) == (dry["wanted"], dry["new"], dry["ids"])
        assert (3, 3) == (made["new"], len(made["ids"]))
        assert (4, 1, 3) == (more["wanted"], more["new"], more["duplicate"])
        assert "queued" == (await site.house.mission(more["ids"][0]))["status"]
        for bad in ({"date_end": "2024-12-31"}, {"days": 0}, {"languages": ["?"]}):
            refused = await ask("/api/ads/generate", json={**body, **bad})
            assert (422, "bad_input") == code_of(refused), bad


def test_the_days_before_a_tick_are_those_of_its_own_time_zone():
    two_in_the_night = datetime(2026, 3, 1, 2, tzinfo=UTC)  # the day before, in São Paulo

    assert (date(2026, 2, 27), date(2026, 2, 27)) == days_before(
        two_in_the_night, "America/Sao_Paulo", 1
    )
    assert (date(2026, 2, 22), date(2026, 2, 28)) == days_before(two_in_the_night, "UTC", 7)


async def test_yesterdays_ads_every_day_each_tick_once(database_url, tmp_path):
    async with site_of(database_url, tmp_path, proxies=0) as site:
        rule = {"name": "ontem", "cron": "0 6 * * *", "languages": ["pt", "en"]}
        path = "/api/ads/recurrences"
        made = await site.operator.post(path, json=rule)
        assert 201 == made.status_code
        twice = await site.operator.post(path, json=rule)
        assert (409, "illegal_move") == code_of(twice)
        assert 422 == (await site.operator.post(path, json={**rule, "cron": "x"})).status_code

        for _ in range(2):  # a second run finds what the first has made
            await site.app.schedules.run("ads ontem", actor="ana")
            await site.house.drain()

        ticks = await site.house.rows("SELECT at FROM ticks WHERE schedule = 'ads ontem'")
        at = moment(min(at for (at,) in ticks))
        found = await site.house.rows(
            "SELECT m.date_start, m.date_end, m.status FROM missions m ORDER BY m.id"
        )
        assert at is not None
        yesterday, _ = days_before(at, site.app.timezone, 1)
        assert 2 * [(str(yesterday), str(yesterday), "queued")] == [
            (str(start), str(end), status) for start, end, status in found
        ]
        [shown] = (await site.viewer.get(path)).json()
        assert ("ontem", ["pt", "en"], 1, False) == tuple(
            shown[name] for name in ("name", "languages", "back", "paused")
        )
        assert 204 == (await site.operator.delete(f"{path}/ontem")).status_code
        assert [] == (await site.viewer.get(path)).json()
