"""The scrape worker as a program: its API as §9.1 of seed 004 has it, through real proxies, and killed."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from retoma import Retoma
from retoma.apps.ads.sandbox import Library, Wanted
from retoma.engine.rules.errors import IllegalMove
from retoma.outbound import Outbound
from retoma.programs.worker import ADAPTERS, Config
from retoma.programs.worker.model import Filters, ScrapeRequest, SessionState
from retoma.programs.worker.scrape import register
from retoma.programs.worker.scrapes import KIND
from retoma.programs.worker.session import Record, write
from retoma.programs.worker.worker import Worker
from retoma.secret import Secret
from retoma.vault import SecretSlot
from tests.apps.ads.test_sandbox import as_row
from tests.lines import whole_lines
from tests.programs.logbooks import doubled
from tests.programs.processes import Client, Program, Programs, client, eventually, programs

SEED = 7
CANARY = "canary-5f0e&proxy/pass"
TWO_WEEKS = ("2025-03-01", "2025-03-14")


@dataclass(frozen=True, slots=True)
class World:
    """A site, proxies, and two workers: one for each layout."""

    programs: Programs
    site: Program
    red: Program
    blue: Program
    gallery: Client  # --misbehave
    archive: Client  # --no-keys

    def fault(self, **told: Any) -> None:
        answer = self.gallery.http.post(f"{self.site.origin}/_sandbox/faults", json=told)
        assert 204 == answer.status_code

    def requests(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = self.gallery.http.get(
            f"{self.site.origin}/_sandbox/log"
        ).json()
        return lines

    def log(self, worker: Client) -> list[dict[str, Any]]:
        return [json.loads(line) for line in whole_lines(folder_of(worker) / "worker.jsonl")]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("worker")
    with programs(folder) as those:
        site = those.begin("sandbox", "ads", "--seed", str(SEED))
        red, blue = (those.proxy(name, "ana", CANARY) for name in ("red", "blue"))
        site.wait()
        begun = [
            those.begin(
                *("worker-service", "--site", site.origin, "--adapter", layout),
                *("--data", str(folder / layout), "--watch", "0.1", *more),
            )
            for layout, more in (
                ("gallery", ("--misbehave",)),
                ("archive", ("--no-keys",)),
            )
        ]
        for each in (red, blue, *begun):
            each.wait()
        with client(begun[0]) as gallery, client(begun[1]) as archive:
            yield World(those, site, red, blue, gallery, archive)


@pytest.fixture
def world(started: World) -> World:
    """All well, and nothing under way."""
    started.gallery.http.delete(f"{started.site.origin}/_sandbox/faults")
    started.gallery.ask("POST", "/misbehave", {"times": 0})
    for worker in (started.gallery, started.archive):
        assert 200 == worker.ask("DELETE", "/session").status_code
    return started


def folder_of(worker: Client) -> Path:
    words = worker.program.words
    return Path(words[words.index("--data") + 1])


def begin_session(worker: Client, proxy: Program, password: str = CANARY) -> Any:
    proxied = {"server": proxy.server, "username": "ana", "password": password}
    return worker.ask("POST", "/session", {"force_refresh": True, "proxy": proxied})


def state(worker: Client) -> str:
    return str(worker.ask("GET", "/session/status").json()["status"])


def until(worker: Client, wanted: str) -> None:
    eventually(lambda: state(worker) == wanted, lambda: (wanted, state(worker)))


def ready(worker: Client, proxy: Program) -> None:
    assert 200 == begin_session(worker, proxy).status_code
    until(worker, "ready")


def asking(
    start: str = TWO_WEEKS[0], end: str = TWO_WEEKS[1], media: str = "all", *languages: str
) -> dict[str, Any]:
    """As §2.4.1 has it."""
    return {
        "filters": {
            "date_range": {"start": start, "end": end},
            "format": media,
            "sort_by": "qtd_ads",
            "languages": list(languages),
        },
        "options": {"max_ads": "all", "batch_size": 150},
    }


def begin(worker: Client, asked: dict[str, Any] | None = None, key: str | None = None) -> str:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = worker.ask("POST", "/scrape", asked or asking(), headers)
    assert 200 == answer.status_code, answer.text
    return str(answer.json()["job_id"])


def status(worker: Client, job: str) -> dict[str, Any]:
    told: dict[str, Any] = worker.ask("GET", f"/scrape/{job}").json()
    return told


def ended(worker: Client, job: str, *wanted: str) -> dict[str, Any]:
    """What is told of it once it stands so."""
    eventually(
        lambda: status(worker, job)["status"] in wanted, lambda: (wanted, status(worker, job))
    )
    return status(worker, job)


def results(worker: Client, job: str) -> Any:
    return worker.http.get(f"{worker.program.origin}/{job}/{job}_results.json")


def expected(*, media: str = "", languages: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    first, last = (date.fromisoformat(day) for day in TWO_WEEKS)
    wanted = Wanted(
        start=first,
        end=last,
        media_type=media,
        languages=frozenset(languages),
        by_count=True,
    )
    return [as_row(ad) for ad in Library(SEED).find(wanted)]


def test_a_session_goes_through_all_its_states_and_through_its_proxy_alone(world):
    seen_before = len(world.requests())
    assert "terminated" == state(world.gallery)
    answer = begin_session(world.gallery, world.red)
    until(world.gallery, "ready")
    job = begin(world.gallery, asking(TWO_WEEKS[0], TWO_WEEKS[1], "video", "pt"))
    told = ended(world.gallery, job, "completed")
    world.gallery.ask("DELETE", "/session")

    assert "initializing" == answer.json()["status"]
    ours = [
        line
        for line in world.log(world.gallery)
        if line.get("session") == answer.json()["session_id"]
    ]
    assert [
        "session.began",
        "connecting",
        "authenticating",
        "warming_up",
        "ready",
        "scrape.began",
        "terminated",
    ] == [line.get("state", line["event"]) for line in ours]
    assert {world.red.server} == {line["proxy"] for line in ours}
    through = [line["proxy"] for line in world.requests()[seen_before:]]
    assert len(through) >= 3
    assert {"red"} == set(through)
    assert "terminated" == state(world.gallery)
    assert len(expected(media="video", languages=("pt",))) == told["ads_count"]
    assert {"ads": expected(media="video", languages=("pt",))} == results(
        world.gallery, job
    ).json()


def test_f1_killed_in_the_middle_it_goes_on_with_the_page_it_was_at(world):
    """M1: and the worker's own log never shows two live scrapes or sessions."""
    ready(world.archive, world.red)
    undisturbed = begin(world.archive)
    ended(world.archive, undisturbed, "completed")
    seen_before = len(world.requests())
    world.fault(trouble="hang", path="/archive", after=3)
    job = begin(world.archive)
    eventually(lambda: any(line["fault"] for line in world.requests()[seen_before:]))
    assert "scraping" == state(world.archive)
    assert "running" == status(world.archive, job)["status"]

    world.archive.program.kill()
    world.archive.program.start()
    told = ended(world.archive, job, "completed")

    assert results(world.archive, undisturbed).content == results(world.archive, job).content
    assert expected() == results(world.archive, job).json()["ads"]
    assert len(expected()) == told["ads_count"]
    asked = [
        line["query"]
        for line in world.requests()[seen_before:]
        if line["path"] == "/archive" and "2025-03-01" in line["query"]
    ]
    assert len(asked) == len(set(asked)) + 1  # only the one nobody had answered was asked again
    assert [] == doubled([folder_of(world.archive) / "worker.jsonl"])
    until(world.archive, "ready")  # what was promised before is kept, through the same proxy
    assert {world.red.server} == {
        line["proxy"] for line in world.log(world.archive) if "proxy" in line
    }


def test_e27_the_password_of_a_proxy_is_nowhere_to_be_read(world):
    ready(world.gallery, world.red)
    wrong = begin_session(world.archive, world.red, "wrong-" + CANARY)
    until(world.archive, "disconnected")
    answers = [wrong.text, world.archive.ask("GET", "/session/status").text]

    texts = [path.read_bytes() for path in world.programs.folder.rglob("*") if path.is_file()]
    assert texts
    spellings = [
        CANARY.encode(),
        json.dumps(CANARY)[1:-1].encode(),
        CANARY.encode().hex().encode(),
    ]
    assert not [text for text in texts for each in spellings if each in text]
    assert not any(CANARY in text for text in [*answers, json.dumps(world.requests())])


def test_a_session_that_cannot_be_or_is_cut_off_says_so(world):
    begin_session(world.gallery, world.red, "wrong")
    until(world.gallery, "disconnected")
    assert "error" in world.gallery.ask("GET", "/session/status").json()
    assert 409 == world.gallery.ask("POST", "/scrape", asking()).status_code

    doomed = world.programs.proxy("doomed", "ana", CANARY)
    doomed.wait()
    ready(world.gallery, doomed)
    doomed.kill()
    until(world.gallery, "disconnected")

    ready(world.gallery, world.blue)
    world.fault(trouble="status", status=403, path="/gallery", proxy="blue", times=None)
    job = begin(world.gallery)
    assert "session_over" == ended(world.gallery, job, "failed")["error_code"]
    until(world.gallery, "disconnected")
    assert 200 == world.gallery.ask("DELETE", "/session").status_code
    assert "terminated" == state(world.gallery)


def test_every_status_of_a_scrape_is_told(world):
    ready(world.gallery, world.red)
    nothing = begin(world.gallery, asking("2024-01-01", "2024-01-02"))
    assert 0 == ended(world.gallery, nothing, "empty")["ads_count"]

    world.fault(trouble="status", status=429, retry_after=900, path="/gallery")
    throttled = begin(world.gallery)
    ended(world.gallery, throttled, "queued")
    other = world.gallery.ask("POST", "/scrape", asking())
    assert (409, "illegal_move") == (other.status_code, other.json()["code"])
    assert 200 == world.gallery.ask("POST", f"/scrape/{throttled}/cancel").status_code
    ended(world.gallery, throttled, "cancelled")

    world.fault(trouble="status", status=401, path="/gallery")
    shut = begin(world.gallery)
    ended(world.gallery, shut, "paused")
    world.gallery.ask("POST", f"/scrape/{shut}/cancel")
    ended(world.gallery, shut, "cancelled")

    world.fault(trouble="cut", path="/gallery", times=2)  # tried again, and none the wiser
    first = {**asking(), "options": {"max_ads": 10, "batch_size": 150}}
    ten = begin(world.gallery, first)
    assert 10 == ended(world.gallery, ten, "completed")["ads_count"]
    assert expected()[:10] == results(world.gallery, ten).json()["ads"]

    world.fault(trouble="hang", path="/gallery", after=1)
    held = begin(world.gallery)
    eventually(lambda: status(world.gallery, held)["ads_count"] >= 150)
    assert 0 < status(world.gallery, held)["progress_pct"] < 100
    world.gallery.ask("DELETE", "/session")
    assert "cancelled" == status(world.gallery, held)["status"]
    last = [line["event"] for line in world.log(world.gallery)][-2:]
    assert ["scrape.ended", "session.ended"] == last


def test_the_same_key_is_the_same_scrape_unless_the_worker_knows_no_keys(world):
    assert 409 == world.gallery.ask("POST", "/scrape", asking()).status_code
    ready(world.gallery, world.red)
    key = "mission-1:1"
    keyed = {"Idempotency-Key": key}
    job = begin(world.gallery, key=key)

    assert job == begin(world.gallery, key=key)
    other = world.gallery.ask("POST", "/scrape", asking("2025-03-02"), keyed)
    assert (409, "idempotency_mismatch") == (other.status_code, other.json()["code"])
    ended(world.gallery, job, "completed")
    assert job == begin(world.gallery, key=key)
    found = world.gallery.ask("GET", "/scrape?key=mission-1:1")
    assert (job, "completed") == (found.json()["job_id"], found.json()["status"])
    unknown = world.gallery.ask("GET", "/scrape?key=mission-2:1")
    assert (404, "known") == (unknown.status_code, unknown.headers["retoma-keys"])

    ready(world.archive, world.blue)
    world.fault(trouble="hang", path="/archive")
    begin(world.archive, key=key)
    assert 409 == world.archive.ask("POST", "/scrape", asking(), keyed).status_code
    assert 405 == world.archive.ask("GET", "/scrape?key=mission-1:1").status_code


def test_what_makes_no_sense_is_refused_and_changes_nothing(world):
    ready(world.gallery, world.red)
    ask = world.gallery.ask
    proxy = {"server": "user:secret@proxy", "username": "", "password": ""}

    assert (
        401
        == world.gallery.http.get(f"{world.gallery.program.origin}/session/status").status_code
    )
    assert (
        401 == ask("GET", "/session/status", headers={"x-api-key": "k" * 39 + "x"}).status_code
    )
    assert 404 == ask("GET", "/scrape/scrape_00000000").status_code
    assert 404 == ask("POST", "/scrape/scrape_00000000/cancel").status_code
    assert 422 == ask("POST", "/scrape", {"filters": {}}).status_code
    assert 422 == ask("POST", "/scrape", asking("2025-03-02", "2025-03-01")).status_code
    assert 422 == ask("POST", "/scrape", asking(*TWO_WEEKS, "audio")).status_code
    assert 422 == ask("POST", "/scrape", asking(*TWO_WEEKS, "all", "pt';--")).status_code
    assert 422 == ask("POST", "/session", {"proxy": proxy}).status_code
    assert 404 == ask("POST", "/misbehaving", {}).status_code
    for path in ("/etc/passwd", "/..%2f..%2fworker.db/x", "/scrape_1/scrape_2_results.json"):
        assert 404 == ask("GET", path).status_code
    assert "ready" == state(world.gallery)


def test_f14_it_misbehaves_as_it_is_told(world):
    ask = world.gallery.ask
    for fault, seen in (
        ("stuck", "stuck"),
        ("disconnected", "disconnected"),
        ("never_ready", "warming_up"),
    ):
        ask("POST", "/misbehave", {"session": fault})
        begin_session(world.gallery, world.red)
        until(world.gallery, seen)

    ready(world.gallery, world.red)
    ask("POST", "/misbehave", {"session": "stuck", "now": True})
    assert "stuck" == state(world.gallery)

    ready(world.gallery, world.red)
    week = asking("2025-03-01", "2025-03-07")

    def told(fault: str) -> str:
        ask("POST", "/misbehave", {"scrape": fault})
        return str(ask("POST", "/scrape", week).json()["job_id"])

    for fault, seen in (("never_ends", "running"), ("paused", "paused")):
        job = told(fault)
        ended(world.gallery, job, seen)
        assert "scraping" == state(world.gallery)
        ask("POST", f"/scrape/{job}/cancel")
        ended(world.gallery, job, "cancelled", "completed")
    assert 404 == ask("GET", f"/scrape/{told('vanishes')}").status_code
    until(world.gallery, "ready")
    ended(world.gallery, told("fails"), "failed")
    cut = told("truncated")
    ended(world.gallery, cut, "completed")
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        results(world.gallery, cut).json()
    doubled = told("duplicate_ids")
    count = ended(world.gallery, doubled, "completed")["ads_count"]
    assert count + 3 == len(results(world.gallery, doubled).json()["ads"])
    spoilt = told("bad_rows")
    ended(world.gallery, spoilt, "completed")
    assert None is results(world.gallery, spoilt).json()["ads"][0]["id"]
    job = told("never_ends")
    ready(world.gallery, world.blue)  # a new session ends what would never have ended
    assert status(world.gallery, job)["status"] in ("cancelled", "completed")
    assert "/" in told("hostile_id")


async def test_a_scrape_that_nobody_has_begun_is_pending(tmp_path):
    async with alone(tmp_path) as worker:
        filters = Filters(start=TWO_WEEKS[0], end=TWO_WEEKS[1])
        request = ScrapeRequest(id="scrape_1", session="ses_1", proxy="", filters=filters)
        await worker.retoma.submit(KIND, request, key=request.id)
        async with worker.alive():
            assert "pending" == (await worker.scrape("scrape_1")).status


@pytest.mark.parametrize("left", ["terminated", "stuck", "disconnected"])
async def test_a_session_that_was_over_stays_over_when_the_worker_comes_back(tmp_path, left):
    write(tmp_path, Record(id="s", server="127.0.0.1:1", tls=False, state=SessionState(left)))
    async with alone(tmp_path) as worker, worker.alive():
        assert left == (await worker.session_state())[0]
        await worker.end_session()
        assert "terminated" == (await worker.session_state())[0]
    async with alone(tmp_path) as worker, worker.alive():
        assert "terminated" == (await worker.session_state())[0]


async def test_a_scrape_that_was_told_of_and_never_written_down_is_over_on_waking(tmp_path):
    async with alone(tmp_path) as worker:
        await worker.record_event("session.began", session="ses_1", proxy="127.0.0.1:1")
        await worker.record_event("scrape.began", job_id="scrape_1")
        assert ["scrape_1"] == worker.log.unended("scrape", "job_id")
        async with worker.alive():
            assert [] == worker.log.unended("scrape", "job_id")
            assert [] == worker.log.unended("session", "session")


async def test_a_session_that_comes_back_is_not_ready_before_it_is(tmp_path):
    write(tmp_path, Record(id="s", server="127.0.0.1:1", tls=False, state=SessionState.READY))
    async with alone(tmp_path) as worker, worker.alive():
        assert "initializing" == (await worker.session_state())[0]


async def test_a_session_whose_secret_does_not_open_any_more_is_over_and_says_why(tmp_path):
    record = Record(id="s", server="127.0.0.1:1", tls=False, state=SessionState.READY)
    write(tmp_path, record)
    async with alone(tmp_path) as worker:
        await (await worker._vault()).put(
            SecretSlot("worker_session", "proxy", "s"), Secret("[]"), actor="test"
        )
        (tmp_path / "secret.key").unlink()
        async with worker.alive():
            state, error = await worker.session_state()

    assert "terminated" == state
    assert "no key" in str(error)


async def test_a_proxy_in_a_private_network_needs_the_word_of_the_operator(tmp_path):
    async with alone(tmp_path) as worker, worker.alive():
        await worker.begin_session("10.0.0.7:3128", "ana", CANARY, refresh=True)
        while (told := await worker.session_state())[0] != "disconnected":
            await worker.retoma.clock.sleep(0.01)

    assert "10.0.0.7 is" in str(told[1])


async def test_a_proxy_that_says_nothing_for_its_limit_makes_a_session_stuck(tmp_path):
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until whoever asked has had enough
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as proxy:
        near = {"limit": 0.5, "private": frozenset({"127.0.0.1"})}
        async with alone(tmp_path, **near) as worker, worker.alive():
            port = proxy.sockets[0].getsockname()[1]
            await worker.begin_session(f"127.0.0.1:{port}", "ana", CANARY, refresh=True)
            seen = []
            while (state := (await worker.session_state())[0]) != "stuck":
                seen.append(state)
                await worker.retoma.clock.sleep(0.01)

    assert "authenticating" in seen


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3))
def test_f1_m1_killed_again_and_again_every_scrape_ends_as_if_nothing_had_been(world, seed):
    """kill -9 wherever it happens to be; its own log never shows two live scrapes or sessions."""
    chance = random.Random(seed)
    worker, wanted = world.archive, expected()
    for _ in range(8):
        ready(worker, chance.choice([world.red, world.blue]))
        job = begin(worker)
        for _ in range(chance.randint(0, 3)):
            # How far it comes in between is chance, whatever the machine: so is where it dies.
            time.sleep(chance.uniform(0, 0.4))  # noqa: TID251
            worker.program.kill()
            worker.program.start()
        ended(worker, job, "completed")
        assert wanted == results(worker, job).json()["ads"]
    assert [] == doubled([folder_of(worker) / "worker.jsonl"])


@asynccontextmanager
async def alone(folder: Path, **how: Any) -> AsyncIterator[Worker]:
    """A worker in this process, with nobody to run what it is told."""
    async with Retoma(f"sqlite:///{folder / 'worker.db'}") as retoma, Outbound() as out:
        config = Config(
            site="http://ads.example.org",
            adapter=ADAPTERS["gallery"],
            folder=folder,
            **how,
        )
        worker = Worker(config, retoma, out)
        register(worker)
        yield worker


async def test_a_folder_has_one_worker_at_a_time(tmp_path):
    async with alone(tmp_path) as first, first.alive(), alone(tmp_path) as second:
        with pytest.raises(IllegalMove, match="another worker"):
            async with second.alive():
                pass
