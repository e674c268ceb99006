"""`retoma audit bundle` and `verify`, as a person types them."""

import json
from pathlib import Path


def test_a_bundle_is_written_and_verified_and_a_changed_one_is_told(verb, worked, monkeypatch):
    made = verb("audit", "bundle", "job.jsonl", "--job", "3")
    told = json.loads(verb("audit", "bundle", "batch.jsonl", "--batch", "1", "--json").out)
    right = verb("audit", "verify", "job.jsonl")
    alone = verb("audit", "verify", "job.jsonl", "--database", "sqlite:///elsewhere.db")
    monkeypatch.setenv("RETOMA_SECRET_KEY_FILE", "work.db.key")
    by_key = verb("audit", "verify", "batch.jsonl", "--database", "sqlite:///elsewhere.db")
    Path("job.jsonl").write_text(Path("job.jsonl").read_text().replace("no_three", "no_seven"))
    wrong = verb("audit", "verify", "job.jsonl")
    neither = verb("audit", "bundle", "x.jsonl")
    both = verb("audit", "bundle", "x.jsonl", "--job", "1", "--batch", "1")

    assert (0, True) == (made.code, "job 3" in made.out)
    assert {"batch": 1} == told["of"]
    assert (0, True) == (right.code, "is what was signed" in right.out)
    assert (1, True) == (alone.code, "no secret key" in alone.err)
    assert 0 == by_key.code
    assert (2, True) == (wrong.code, "was changed after signing" in wrong.err)
    assert (2, 2) == (neither.code, both.code)
    assert 0o600 == Path("batch.jsonl").stat().st_mode & 0o777
