"""`retoma embeddings embed` and `retoma embeddings search`: a folder is embedded with no server and no runner, and found again."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retoma.apps.embeddings.face import QueueClaim
from tests.apps.embeddings.aids import Counting, house
from tests.cli.conftest import PATIENCE, Said, started, verb
from tests.engine.aids import eventually, running

__all__ = ["verb"]  # the command line's own fixture, for this module too

Verb = Callable[..., Said]


@pytest.fixture(autouse=True)
def chosen(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the verbs ask is tested on both databases elsewhere; what they say, on the quicker one."""
    monkeypatch.setenv("RETOMA_DATABASE_URL", sqlite_url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "textos"
    (made / "sub").mkdir(parents=True)
    (made / "casa.txt").write_text("A casa na colina tinha um jardim de rosas.")
    (made / "sub" / "mar.md").write_text("O mar batia nas pedras, e os barcos voltavam.")
    (made / "vazio.txt").write_text("  \n")
    (made / "foto.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    (made / "grande.txt").write_bytes(b"x" * (6 << 20))
    return made


def said(verb: Verb, *words: str) -> Any:
    done = verb(*words, "--json")
    assert 0 == done.code, done.err
    return json.loads(done.out)


def test_a_folder_is_embedded_and_searched(verb, folder):
    told = said(verb, "embeddings", "embed", str(folder), "--collection", "livros")
    assert (2, 0, {"done": 2}) == (told["new"], told["already"], told["ends"])
    assert {"foto.jpg": "bad_text", "grande.txt": "too_large", "vazio.txt": "empty_text"} == {
        each["name"]: each["code"] for each in told["refused"]
    }
    again = verb("embeddings", "embed", str(folder), "--collection", "livros")
    assert 0 == again.code, again.err
    assert "2 were there already" in again.out
    assert "left out: foto.jpg (bad_text)" in again.out

    [hit] = said(
        verb, "embeddings", "search", "jardim", "--collection", "livros", "--limit", "1"
    )
    assert "casa.txt" == hit["name"]
    found = verb("embeddings", "search", "barcos no mar", "--collection", "livros")
    assert 0 == found.code, found.err
    assert "sub/mar.md" in found.out


def test_a_folder_is_given_metadata_and_searched_by_it(verb, folder):
    said(
        verb,
        "embeddings",
        "embed",
        str(folder),
        "--collection",
        "livros",
        "--metadata",
        "autor=Ana",
    )
    asked = ("embeddings", "search", "jardim", "--collection", "livros")

    found = said(verb, *asked, "--metadata", "autor=Ana", "--mode", "vector")
    assert {"autor": "Ana"} == found[0]["metadata"]
    assert [] == said(verb, *asked, "--metadata", "autor=Bia")
    assert "--mode is hybrid or vector, not x" in verb(*asked, "--mode", "x").err
    assert "key=value" in verb(*asked, "--metadata", "x").err


def test_without_waiting_it_is_left_to_runners(verb, folder):
    told = said(verb, "embeddings", "embed", str(folder), "--collection", "livros", "--no-wait")
    assert 2 == told["new"]
    assert "ends" not in told
    nothing = verb("embeddings", "search", "jardim", "--collection", "livros")
    assert "No results" in nothing.out


def test_what_cannot_be_is_said_in_one_line(verb, folder, sqlite_url):
    for words in (
        ("embed", str(folder / "casa.txt"), "--collection", "livros"),
        ("embed", str(folder / "nenhuma"), "--collection", "livros"),
        ("embed", str(folder), "--collection", "a/b"),
        ("search", "x", "--collection", "nenhuma"),
        ("search", "", "--collection", "livros"),
    ):
        done = verb("embeddings", *words)
        assert done.code in (1, 2), (words, done)
        assert 1 == len(done.err.strip().splitlines()), done.err


def test_a_worker_goes_by_the_documents_variables_and_its_words_are_in_its_log(
    verb, folder, sqlite_url
):
    """`WORKER_ID=worker-1 retoma runner`: by that name its numbers are asked for, and its lines are found."""
    said(verb, "embeddings", "embed", str(folder), "--collection", "livros", "--no-wait")
    done = started(
        *("runner", "--until-idle"),
        folder=folder,
        environment={
            "WORKER_ID": "worker-1",
            "JOB_LOCK_TTL_MS": "90000",
            "JOB_HEARTBEAT_INTERVAL_MS": "15000",
            "RETOMA_APPLICATIONS": "embeddings",
        },
    )
    _, err = done.communicate(timeout=PATIENCE)
    assert 0 == done.returncode, err
    lines = [json.loads(line) for line in err.splitlines()]
    told = [line for line in lines if line["event"] == "job.settled" and "workerId" in line]
    names = ("workerId", "jobType", "attempts", "status")
    assert [("worker-1", "embeddings.document", 1, "completed")] * 2 == [
        tuple(line[name] for name in names) for line in told
    ]
    assert 2 == len({line["jobId"] for line in told}), (
        "one line for each job, at the default level"
    )
    assert all(isinstance(line["durationMs"], int) for line in told)
    queue = QueueClaim(sqlite_url)
    try:
        assert 2 == queue.get_worker_metrics("worker-1")["jobsCompleted"]
    finally:
        queue.close()


async def test_a_document_that_fails_makes_the_command_fail(sqlite_url, verb, folder):
    """Who scripts it is told by the exit code, and where to look."""
    provider = Counting(model="retoma-ngrams", refuses={"mar": "refused"})
    async with house(sqlite_url, provider) as there, running(there.app):

        async def alive() -> bool:
            return bool(await there.app.runners.list())

        await eventually(alive)
        words = ("embeddings", "embed", str(folder), "--collection", "livros")
        done = await asyncio.to_thread(verb, *words)
    assert 1 == done.code
    assert "1 of them are embedded" in done.out
    assert "retoma dead list" in done.err
