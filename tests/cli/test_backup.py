"""`retoma backup` and `retoma restore`, as a person types them."""

import json
from pathlib import Path

from tests.cli.conftest import with_app


def test_a_house_is_saved_and_found_again_elsewhere(verb, worked, tmp_path):
    (tmp_path / "work.db.key").write_text("a key\n")
    said = verb("backup", "house.tar")
    told = json.loads(verb("backup", "again.tar", "--no-secret-key", "--json").out)
    taken = verb("backup", "house.tar")
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    restored = verb("restore", "house.tar", "--database", elsewhere)
    there = verb("restore", "house.tar", "--database", elsewhere)
    list_ = json.loads(verb("jobs", "list", "--json", "--database", elsewhere).out)

    assert 0 == said.code
    assert "house.tar: " in said.out
    assert (5, False) == (told["rows"]["jobs"], told["secret_key"])
    assert (1, True) == (taken.code, "exists already" in taken.err)
    assert (0, True) == (restored.code, "is as it was at" in restored.out)
    assert "a key\n" == Path("elsewhere.db.key").read_text()
    assert (1, True) == (there.code, "over nothing" in there.err)
    assert 5 == len(list_ if isinstance(list_, list) else list_["jobs"])


def test_what_is_not_there_is_said(verb, url, monkeypatch):
    nothing = verb("backup", "house.tar")
    no_file = verb("restore", "house.tar")
    monkeypatch.setenv("RETOMA_SECRET_KEY", "a" * 64)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "word")
    monkeypatch.setenv("RETOMA_EVIDENCE", "s3://evidence/a?endpoint=http://localhost")
    with_app(url, lambda app: app.upgrade())
    said = verb("backup", "house.tar")

    assert (69, 2) == (nothing.code, no_file.code)
    assert "house.tar" in no_file.err
    assert 0 == said.code
    assert "RETOMA_SECRET_KEY is not in it" in said.out
    assert "evidence in s3://evidence/a" in said.out
