"""`retoma ads …`: the orchestrator from the command line, in the words of its pages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.apps.ads.test_adopt import copied
from tests.cli.conftest import Said, nothing_is_logged, url, verb, with_app

__all__ = ["nothing_is_logged", "url", "verb"]  # fixtures, for this module too

W = ("--url", "http://127.0.0.1:9", "--api-key", "env:KEY", "--storage-domain", "127.0.0.1:8")


@pytest.fixture
def there(url, monkeypatch):
    async def used(app):
        await app.upgrade()

    with_app(url, used)
    monkeypatch.setenv("KEY", "CANARY-" + "k" * 30)
    monkeypatch.setenv("RETOMA_PRIVATE_HOSTS", "127.0.0.1")
    return url


def said(verb: Callable[..., Said], *words: str) -> Any:
    done = verb("ads", *words, "--json")
    assert 0 == done.code, done.err
    return json.loads(done.out)


def test_from_nothing_to_missions_in_the_queue(there, verb):
    assert ["WRK-000001"] == said(verb, "workers", "add", "W1", *W)["ids"]
    again = verb("ads", "workers", "add", "W1 once more", *W)
    assert (1, True) == (again.code, "is the same as WRK-000001" in again.err)
    proxy = ("p.example.org", "--port", "80", "--username", "u", "--password", "env:KEY")
    assert ["PRX-000001"] == said(verb, "proxies", "add", *proxy)["ids"]
    assert 2 == verb("ads", "writers", "add", "T", "--url", "nonsense", "--api-key", "x").code

    first = said(verb, "missions", "add", "2025-01-01", "2025-01-02", "--language", "pt")["ids"]
    assert (
        2 == verb("ads", "missions", "add", "2025-01-02", "2025-01-01", "--language", "pt").code
    )
    days = ("2025-01-01", "2025-01-03", "--language", "en", "--days", "2")
    assert (2, 2, []) == tuple(
        said(verb, "generate", *days)[n] for n in ("wanted", "new", "ids")
    )
    assert 2 == len(said(verb, "generate", *days, "--apply", "--queue")["ids"])
    said(verb, "missions", "queue", *first)
    told = said(verb, "start")
    assert ("started", 3, 1) == (told["wish"], told["queued_count"], told["session_count"])
    assert "canceled" == said(verb, "missions", "cancel", *first)["status"]
    assert ["mission_queued", "mission_canceled"] == [
        each["event"] for each in said(verb, "missions", "timeline", *first)
    ]
    said(verb, "missions", "delete", *first)
    assert 1 == verb("ads", "missions", "queue", *first).code
    assert 2 == len(said(verb, "missions", "list", "--status", "queued"))
    assert 2 == verb("ads", "missions", "list", "--status", "gone").code

    said(verb, "proxies", "deactivate", "PRX-000001")
    [shown] = said(verb, "proxies", "list")
    assert not shown["active"]
    said(verb, "proxies", "activate", "PRX-000001")
    assert {"tests": 1} == said(verb, "workers", "test")
    assert 1 == verb("ads", "workers", "test", "WRK-999999").code
    assert "stopped" == said(verb, "stop", "--now")["wish"]
    _changed_and_deleted(verb)
    pages = [verb("ads", *words).out for words in (("workers", "list"), ("missions", "list"))]
    assert "CANARY" not in "".join(pages)
    assert "W2" in pages[0]


def _changed_and_deleted(verb: Callable[..., Said]) -> None:
    new = ("--name", "W2", "--api-key", "env:KEY")
    assert ["WRK-000001"] == said(verb, "workers", "change", "WRK-000001", *new)["ids"]
    nothing = verb("ads", "workers", "change", "WRK-000001")
    assert (2, True) == (nothing.code, "nothing was changed" in nothing.err)
    other = ("--port", "0", "--username", "", "--vendor", "acme")
    said(verb, "proxies", "change", "PRX-000001", *other)
    for refused in (
        ("workers", "reset", "WRK-000001"),
        ("workers", "relocate", "WRK-000001"),
        ("missions", "resend-failed", "MIS-000002"),
        ("proxies", "delete", "PRX-000001", "PRX-999999"),
    ):
        told = verb("ads", *refused)
        assert 1 == told.code, (refused, told.out, told.err)
    [proxy] = said(verb, "proxies", "list")
    assert (None, None) == (proxy["port"], proxy["username"])
    assert ["PRX-000001"] == said(verb, "proxies", "delete", "PRX-000001")["ids"]


def test_a_file_is_tried_first_and_then_taken_in(there, verb, tmp_path):
    file = tmp_path / "proxies.txt"
    file.write_text("a.example.org:1:u:CANARY\nb.example.org:2:u:CANARY\nbad:port\n")

    dry = said(verb, "import", "proxies", str(file))
    wrong = verb("ads", "import", "proxies", str(file), "--apply")
    file.write_text("a.example.org:1:u:CANARY\nb.example.org:2:u:CANARY\n")
    done = said(verb, "import", "proxies", str(file), "--apply")

    assert (2, 0, 1, []) == tuple(dry[n] for n in ("new", "duplicate", "wrong", "ids"))
    assert (1, True) == (wrong.code, "nothing was added" in wrong.err)
    assert ["PRX-000001", "PRX-000002"] == done["ids"]
    assert "CANARY" not in f"{dry}{wrong}{done}"
    assert 2 == verb("ads", "import", "proxies", str(tmp_path / "nothing")).code


def test_recurrences_reports_and_adoption(there, verb, tmp_path: Path):
    said(verb, "recurrences", "add", "ontem", "--language", "pt")
    assert ["ontem"] == [each["name"] for each in said(verb, "recurrences", "list")]
    said(verb, "recurrences", "remove", "ontem")
    assert 1 == verb("ads", "recurrences", "remove", "ontem").code
    for report in ("failures", "workers", "proxies"):
        assert [] == said(verb, "report", report)

    old = copied("before", tmp_path)
    dry = verb("ads", "adopt", old)
    done = said(verb, "adopt", old, "--apply")

    assert "a dry run: nothing was changed" in dry.out
    assert 3 == done["counts"]["missions"]["new"]
    assert 3 == len(said(verb, "missions", "list"))
    assert "CANARY" not in f"{dry}{done}"
    nothing = tmp_path / "nothing.db"
    assert 69 == verb("ads", "adopt", f"sqlite:///{nothing}").code
    assert not nothing.exists()
    assert 1 == verb("ads", "adopt", "mysql://somewhere/else").code


def test_in_portuguese_too(there, verb, monkeypatch):
    monkeypatch.setenv("RETOMA_LANGUAGE", "pt")

    assert "o orquestrador está parado" in verb("ads", "status").out
    assert "Banco de Missões" in verb("ads", "missions", "--help").out
