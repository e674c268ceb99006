"""`retoma doctor`: each line is ok, warn or fail, with what to do; it changes nothing."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from retoma import db, settings
from retoma.cli import doctor
from retoma.cli.doctor import Verdict
from retoma.db import adhoc, migrations
from retoma.engine.query import Health, RunnerSeen
from tests.cli.conftest import with_app
from tests.engine import aids


def verdicts(said) -> dict[str, str]:
    return {each["check"]: each["verdict"] for each in json.loads(said.out)["checks"]}


def booted(url, **how):
    async def prepared(app):
        await aids.boot(await app.database(), "ana", **how)

    with_app(url, prepared)


def test_a_healthy_house_is_ok_on_both_databases(database_url, verb):
    booted(database_url)

    said = verb("doctor", "--database", database_url, "--json")
    told = json.loads(said.out)

    expected = {
        *("settings", "database", "schema", "clock", "bell", "durability"),
        *("runners", "leases", "counters", "kinds", "disk", "budgets", "writing"),
        "children",
    }
    assert expected == set(verdicts(said))
    wrong = {name for name, verdict in verdicts(said).items() if verdict != "ok"}
    # The tests' own PostgreSQL forgets on purpose: the doctor must see that.
    forgetful = "postgres" in database_url
    assert ({"durability"} if forgetful else set()) == wrong - {
        "bell",
        "disk",
        "children",
    }  # this machine's own
    assert (not forgetful) == told["ok"]
    bell = next(each for each in told["checks"] if each["check"] == "bell")
    assert "rung and heard in" in bell["found"]


def test_without_a_runner_it_says_how_to_start_one(worked, verb):
    said = verb("doctor")

    assert 0 == said.code
    assert "none is alive" in said.out
    assert "retoma runner --app" in said.out


def test_orphans_and_differing_leases_are_seen(database_url, verb, test_clock):
    test_clock.jump(0)
    booted(database_url, lease=30.0)

    async def hold(app):
        database = await app.database()
        await aids.submit(database, 2)
        await aids.claim(database, "ana", slots=2)

    with_app(database_url, hold)
    differing = verb("doctor", "--database", database_url, "--json")
    test_clock.jump(31)
    over = verb("doctor", "--database", database_url, "--json")

    assert "leases differ: runners have 30 s, this environment says 60 s" in differing.out
    assert "ok" == verdicts(differing)["leases"]
    assert "warn" == verdicts(over)["leases"]
    assert "2 jobs are held by runners whose lease is over" in over.out


def test_a_kind_nobody_knows_is_named(worked, verb):
    booted(worked, knows=["other@1"])

    async def submit(app):
        await app.submit("note", "hello")

    with_app(worked, submit)
    said = verb("doctor", "--json")

    assert "warn" == verdicts(said)["kinds"]
    assert "1 note" in said.out


def test_a_missing_migration_fails_and_is_not_applied(worked, verb):
    async def undo() -> None:
        database = db.open(worked)
        await migrations.downgrade(database, to=0)
        database.close()

    asyncio.run(undo())

    said = verb("doctor", "--json")

    assert 1 == said.code
    assert "fail" == verdicts(said)["schema"]
    assert "retoma db upgrade" in said.out
    assert 1 == verb("doctor").code


def test_settings_that_contradict_each_other_fail_with_the_rule(worked, verb, monkeypatch):
    monkeypatch.setenv("RETOMA_TICK", "90")

    said = verb("doctor", "--json")

    assert 1 == said.code
    assert {"settings": "fail"} == verdicts(said)
    assert "RETOMA_TICK" in said.out
    assert "RETOMA_LEASE" in said.out


def test_a_server_that_is_away_is_69_without_its_password(url, verb):
    said = verb("doctor", "--json", "--database", "postgresql://ana:geheim@127.0.0.1:9/retoma")

    assert 69 == said.code
    told = verdicts(said)
    assert told.pop("children") in ("ok", "warn")  # this machine's own
    assert {"settings": "ok", "database": "fail"} == told
    assert "geheim" not in said.out + said.err


def test_a_file_that_is_not_there_is_69_and_is_not_made(url, verb, tmp_path):
    assert 69 == verb("doctor").code
    assert [] == list(tmp_path.iterdir())


def test_it_changes_nothing(worked, verb):
    def everything() -> Any:
        async def told(app):
            database = await app.database()
            return [
                await aids.rows(database, f"SELECT count(*) FROM {table}")  # noqa: S608
                for table in ("jobs", "events", "audit", "tallies", "runners", "counts")
            ]

        return with_app(worked, told)

    before = everything()
    verb("doctor")

    assert before == everything()


# --- each judgement by itself


@pytest.mark.parametrize(
    ("database", "verdict"), [(100.0, Verdict.OK), (104.9, Verdict.OK), (90.0, Verdict.WARN)]
)
def test_clocks_that_differ_warn_and_say_why_nothing_is_lost(database, verdict):
    check = doctor._skew(database, 99.9, 100.1)

    assert verdict is check.verdict
    assert "by the database's alone" in check.found


def health(**how) -> Health:
    now = db.moment(0)
    assert now is not None
    known = {"now": now, "journal": "wal", "synchronous": "2", "unfolded": 0}
    return Health(**{**known, "unfolded_since": None, "orphans": 0, **how})


@pytest.mark.parametrize(
    ("dialect", "journal", "synchronous", "verdict"),
    [
        ("sqlite", "wal", "2", Verdict.OK),
        ("sqlite", "delete", "2", Verdict.WARN),
        ("sqlite", "wal", "1", Verdict.FAIL),
        ("postgres", "on", "on", Verdict.OK),
        ("postgres", "off", "on", Verdict.FAIL),
        ("postgres", "on", "off", Verdict.FAIL),
    ],
)
def test_what_a_commit_is_worth(dialect, journal, synchronous, verdict):
    seen = health(journal=journal, synchronous=synchronous)

    assert verdict is doctor._writing(dialect, seen).verdict


def test_tallies_nobody_folds_warn():
    late = health(unfolded=10_001, unfolded_since=db.moment(0))

    check = doctor._tallies(late, 90.0)

    assert Verdict.WARN is check.verdict
    assert "10001 tallies not folded, the oldest 90 s old" in check.found
    assert Verdict.OK is doctor._tallies(health(unfolded=9), 90.0).verdict


def test_a_slow_bell_warns():
    assert [Verdict.OK, Verdict.WARN] == [doctor._heard(each).verdict for each in (0.01, 0.5)]


def test_a_runner_in_trouble_fails():
    now = db.moment(0)
    assert now is not None
    runner = RunnerSeen(
        "b",
        "ana",
        "h",
        1,
        "alive",
        now,
        now + timedelta(seconds=60),
        10,
        [],
        False,
        0,
        "no room",
    )

    checks = list(doctor._runners([runner], settings.read()))

    assert [Verdict.OK, Verdict.FAIL] == [check.verdict for check in checks]
    assert "ana claims nothing: no room" == checks[1].found


def test_a_stranger_is_refused(url, verb):
    async def strange() -> None:
        database = db.open(url)
        await database.write(lambda tx: tx.run(adhoc("CREATE TABLE theirs (a text)")), verb="t")
        database.close()

    asyncio.run(strange())
    said = verb("doctor", "--json")

    assert 1 == said.code
    assert "fail" == verdicts(said)["schema"]


def test_deep_finds_nothing_wrong_in_a_database_that_has_worked(worked, verb):
    said = verb("doctor", "--deep", "--json")

    assert 0 == said.code
    assert "ok" == verdicts(said)["deep"]
    assert "deep" not in verdicts(verb("doctor", "--json"))


def test_deep_names_the_object_what_is_wrong_and_what_to_do(worked, verb):
    async def spoil(app):
        await aids.change(await app.database(), "UPDATE jobs SET failures = 9 WHERE id = 2")

    with_app(worked, spoil)
    said = verb("doctor", "--deep", "--json")

    assert 1 == said.code
    [wrong] = [each for each in json.loads(said.out)["checks"] if "deep" in each["check"]]
    assert ("deep: failures", "fail") == (wrong["check"], wrong["verdict"])
    assert "job 2: its row counts 9 failures, its events tell of 0" == wrong["found"]
    assert "retoma jobs show 2" in wrong["todo"]


def test_deep_compares_with_a_ledger(worked, verb, tmp_path):
    line = {"job": 999, "payload": 1, "key": None, "delay": 0.0}
    (tmp_path / "accepted-1.jsonl").write_text(json.dumps(line) + "\n")

    said = verb("doctor", "--ledger", str(tmp_path), "--json")

    assert 1 == said.code
    assert "job 999: it was accepted and is not there" in said.out


def test_it_asks_the_services_of_the_applications(database_url, verb, monkeypatch):
    """A key that is missing is a warning: runners may have it; the others are theirs alone."""
    monkeypatch.setenv("RETOMA_APPLICATIONS", "quotes,documents")
    booted(database_url)

    said = verb("doctor", "--database", database_url, "--json")

    told = {each["check"]: each for each in json.loads(said.out)["checks"]}
    assert {"warn"} == {
        told[name]["verdict"] for name in ("Anthropic", "SerpAPI", "OpenRouter")
    }
    assert "RETOMA_SERPAPI_KEY is not set here" == told["SerpAPI"]["found"]
    assert told["SerpAPI"]["todo"].startswith("set it where the runners run")
