"""Knobs come from the environment, by our names and by older ones; contradictions do not start."""

import pytest

from retoma import settings
from retoma.engine.ops.retention import Keep
from retoma.engine.rules.errors import BadInput
from retoma.secret import redact_text
from retoma.settings import Settings
from tests.house.files import ROOT
from tests.house.tables import rows_of

PAGE = ROOT / "docs" / "reference" / "settings.md"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch):
    for field in Settings.model_fields.values():
        for name in names_of(field):
            monkeypatch.delenv(name, raising=False)


def names_of(field):
    alias = field.validation_alias
    return [alias] if isinstance(alias, str) else list(alias.choices)


def test_without_an_environment_the_defaults_hold():
    found = settings.read()

    assert ("sqlite:///retoma.db", 100, 60, 10) == (
        found.database_url,
        found.slots,
        found.lease,
        found.beat,
    )


def test_the_environment_is_heard_and_what_is_given_holds_over_it(monkeypatch):
    monkeypatch.setenv("RETOMA_SLOTS", "7")
    monkeypatch.setenv("RETOMA_GRACE", "1m30s")
    monkeypatch.setenv("RETOMA_TICK", "0.5")
    monkeypatch.setenv("RETOMA_LOG_LEVEL", "WARNING")

    assert (7, 90.0, 0.5, "warning") == (
        settings.read().slots,
        settings.read().grace,
        settings.read().tick,
        settings.read().log_level,
    )
    assert 9 == settings.read(slots=9).slots
    assert 7 == settings.read(slots=None).slots


@pytest.mark.parametrize(
    ("older", "value", "name", "expected"),
    [
        ("DATABASE_URL", "postgresql://db/x", "database_url", "postgresql://db/x"),
        ("WORKER_ID", "w-7", "runner_name", "w-7"),
        ("JOB_LOCK_TTL_MS", "90000", "lease", 90.0),
        ("JOB_HEARTBEAT_INTERVAL_MS", "2500", "beat", 2.5),
    ],
)
def test_older_names_are_heard(monkeypatch, older, value, name, expected):
    monkeypatch.setenv(older, value)

    assert expected == getattr(settings.read(), name)


def test_our_name_holds_over_the_older_one(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://theirs/x")
    monkeypatch.setenv("RETOMA_DATABASE_URL", "sqlite:///ours.db")

    assert "sqlite:///ours.db" == settings.read().database_url


@pytest.mark.parametrize(
    ("environment", "rule"),
    [
        ({"RETOMA_LEASE": "30", "RETOMA_BEAT": "20"}, r"RETOMA_LEASE .*RETOMA_BEAT .*3 beats"),
        (
            {"JOB_LOCK_TTL_MS": "30000", "JOB_HEARTBEAT_INTERVAL_MS": "20000"},
            r"JOB_LOCK_TTL_MS \(30 s\) and JOB_HEARTBEAT_INTERVAL_MS \(20 s\) contradict",
        ),
        ({"RETOMA_TICK": "60"}, r"RETOMA_TICK .*RETOMA_LEASE .*must be seen"),
        (
            {"RETOMA_LEASE": "60", "JOB_LOCK_TTL_MS": "90000"},
            r"RETOMA_LEASE .*JOB_LOCK_TTL_MS .*give one of them",
        ),
        ({"RETOMA_LANGUAGE": "klingon"}, "RETOMA_LANGUAGE"),
        ({"RETOMA_DATABASE_URL": "mysql://x"}, "mysql is no database of ours"),
        ({"RETOMA_SLOTS": "0"}, "RETOMA_SLOTS"),
        ({"RETOMA_SLOTS": "many"}, "RETOMA_SLOTS"),
        ({"RETOMA_GRACE": "-1"}, "RETOMA_GRACE"),
        ({"RETOMA_GRACE": "soon"}, "RETOMA_GRACE"),
        ({"RETOMA_BEAT": "nan"}, "RETOMA_BEAT"),
        ({"RETOMA_LOG_LEVEL": "loud"}, "RETOMA_LOG_LEVEL"),
    ],
)
def test_row_35_what_contradicts_itself_is_refused_with_the_rule(
    monkeypatch, environment, rule
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(BadInput, match=rule):
        settings.read()


def test_the_page_names_every_setting_with_its_default_and_its_reason():
    expected = []
    for field in Settings.model_fields.values():
        first, *others = names_of(field)
        heard = ", ".join(f"`{name}`" for name in others)
        expected.append([f"`{first}`", heard, f"`{field.default}`", field.description])

    assert expected == rows_of(PAGE, "setting")


def test_the_zone_of_schedules_is_one_there_is(monkeypatch):
    assert "America/Sao_Paulo" == settings.read().timezone

    monkeypatch.setenv("RETOMA_TIMEZONE", "Mars/Olympus")

    with pytest.raises(
        BadInput, match="RETOMA_TIMEZONE: no time zone is called 'Mars/Olympus'"
    ):
        settings.read()


def test_nothing_is_deleted_unasked_and_events_outlive_their_jobs(monkeypatch):
    assert Keep() == settings.read().keep

    monkeypatch.setenv("RETOMA_KEEP_DONE", "30d")
    monkeypatch.setenv("RETOMA_KEEP_EVENTS", "7d")

    with pytest.raises(
        BadInput, match=r"RETOMA_KEEP_DONE .* and RETOMA_KEEP_EVENTS .* contradict"
    ):
        settings.read()
    monkeypatch.setenv("RETOMA_KEEP_EVENTS", "365d")
    assert Keep(done=30 * 86_400.0, events=365 * 86_400.0) == settings.read().keep


@pytest.mark.parametrize("key", ["short", "e" * 31, "e" * 257])
def test_a_key_that_can_be_guessed_is_refused_at_the_start(monkeypatch, key):
    monkeypatch.setenv("RETOMA_API_KEY", key)

    with pytest.raises(BadInput, match=r"RETOMA_API_KEY.*32 to 256") as refused:
        settings.read()

    assert key not in str(refused.value)


def test_a_key_in_an_address_is_told_by_nobody():
    key = "CANARY0123456789abcdefgh"
    chosen = settings.read(
        serpapi_url=f"https://search.example.org/{key}/v1",
        fipe_url=f"https://fipe.example.org/api?k={key[:12]}-query",
        matches_url=f"https://ana:{key[:9]}-pass@matches.example.org",
        openai_url=f"https://{key[:8]}-is-the-user@openai.example.org/v1",
    )

    for url in (chosen.serpapi_url, chosen.fipe_url, chosen.matches_url):
        assert "CANARY" not in redact_text(f"asked {url} and {url}")
    assert "as ***" == redact_text(f"as {key[:8]}-is-the-user")
    assert "https://search.example.org/***/v1" == redact_text(chosen.serpapi_url)
    assert "https://hooks.example.org/v1" == redact_text("https://hooks.example.org/v1")
