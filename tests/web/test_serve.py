"""`retoma serve` as a process: it says where it is, lets in by link, dies and comes back, leaves in order."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from starlette.responses import StreamingResponse

from retoma.console.exits import Exit
from retoma.web import Anybody, router
from tests import nursery
from tests.cli.conftest import wait_for
from tests.web.aids import ROOT_KEY, served

KEYED = {"x-api-key": ROOT_KEY}
SUBMIT = {"kind": "count", "payload": 1}
LINK = re.compile(r"http://127\.0\.0\.1:\d+/enter/\S+")
APP = """
import os
from tests.web.aids import stories
app = stories(os.environ["RETOMA_DATABASE_URL"])
"""


@dataclass(frozen=True, slots=True)
class Process:
    """A server that we started."""

    child: "subprocess.Popen[str]"
    out: Path
    err: Path

    @property
    def said(self) -> str:
        return self.out.read_text()

    @property
    def origin(self) -> str:
        return re.search(r"http://127\.0\.0\.1:\d+", self.said)[0]  # type: ignore[index]


@contextmanager
def process(folder: Path, url: str, *words: str, **environment: str) -> Iterator[Process]:
    out, err = (folder / f"{name}-{len(list(folder.iterdir()))}.txt" for name in ("out", "err"))
    (folder / "served.py").write_text(APP)
    with out.open("w") as stdout, err.open("w") as stderr:
        child = nursery.Born(
            [
                sys.executable,
                "-m",
                "retoma",
                "serve",
                "--port",
                "0",
                "--app",
                "served:app",
                *words,
            ],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path]),
                "RETOMA_DATABASE_URL": url,
                "RETOMA_API_KEY": ROOT_KEY,
                **environment,
            },
            stdout=stdout,
            stderr=stderr,
            text=True,
        )
        try:
            yield Process(child, out, err)
        finally:
            child.kill()
            child.wait()


def listening(server: Process) -> Process:
    wait_for(
        lambda: "listens on" in server.said or server.child.poll() is not None,
        "it never listened",
    )
    assert server.child.poll() is None, server.err.read_text()
    return server


def test_e29_it_serves_lets_in_by_its_link_and_leaves_in_order(database_url, tmp_path):
    with process(tmp_path, database_url, RETOMA_LEASE="600") as server:
        listening(server)
        wait_for(lambda: LINK.search(server.said), "it printed no link")
        with httpx2.Client(base_url=server.origin, timeout=60) as browser:
            assert "ok" == browser.get("/readyz").json()["status"]
            link = LINK.search(server.said)[0]  # type: ignore[index]
            entered = browser.post(link, headers={"Origin": server.origin})
            me = browser.get("/api/me").json()
            refused = browser.get("/livez", headers={"Host": "evil.example"})
            [runner] = browser.get("/api/runners").json()

        server.child.send_signal(signal.SIGTERM)

        assert Exit.OK == server.child.wait(60)
        assert (303, "admin", 421) == (entered.status_code, me["role"], refused.status_code)
        assert ("server", ["retoma.order@1"]) == (runner["name"], runner["knows"])
        [beat, until] = [
            datetime.fromisoformat(runner[at]) for at in ("beat_at", "lease_until")
        ]
        assert timedelta(seconds=1) > abs(until - beat - timedelta(seconds=600)), (
            "its own runner keeps to the settings too"
        )
        log = server.err.read_text()
        assert link.rpartition("/")[2] not in log
        assert ROOT_KEY not in log + server.said


def test_whoever_dies_between_doing_and_saying_so_has_done_it_once(database_url, tmp_path):
    """H-X8 with real crashes: before the commit, and after it, the key tells what happened."""
    headers = {**KEYED, "Idempotency-Key": "k-1"}
    for n, (where, expected) in enumerate(
        (("write.before_commit", 201), ("write.after_commit", 200)), start=1
    ):
        headers["Idempotency-Key"] = where
        with process(
            tmp_path, database_url, "--no-link", RETOMA_CRASHPOINT=f"{where}=kill"
        ) as server:
            listening(server)
            with pytest.raises(httpx2.TransportError):
                httpx2.post(
                    f"{server.origin}/api/jobs", json=SUBMIT, headers=headers, timeout=60
                )
            assert server.child.wait(60) < 0
        with process(tmp_path, database_url, "--no-link") as server:
            listening(server)
            answers = [
                httpx2.post(
                    f"{server.origin}/api/jobs", json=SUBMIT, headers=headers, timeout=60
                )
                for _ in range(2)
            ]
            jobs = httpx2.get(f"{server.origin}/api/jobs?kind=count", headers=KEYED, timeout=60)

        assert [expected, 200] == [each.status_code for each in answers]
        assert 1 == len({each.json()["id"] for each in answers})
        assert n == len(jobs.json()["items"])


def test_e27_the_correlation_goes_from_the_request_to_the_last_line_of_the_job(
    database_url, tmp_path
):
    with process(tmp_path, database_url, "--no-link") as server:
        listening(server)
        made = httpx2.post(
            f"{server.origin}/api/jobs",
            json=SUBMIT,
            headers={**KEYED, "X-Correlation-Id": "order-4711"},
            timeout=60,
        )
        assert 201 == made.status_code
        wait_for(lambda: '"request"' in server.err.read_text(), "the request was never logged")
    runner = nursery.run(
        [sys.executable, "-m", "retoma", "runner", "--app", "served:app", "--until-idle"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path]),
            "RETOMA_DATABASE_URL": database_url,
            "RETOMA_LOG_LEVEL": "debug",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )

    request = [line for line in server.err.read_text().splitlines() if '"request"' in line]
    job = [line for line in runner.stderr.splitlines() if '"job": 1' in line]
    assert all("order-4711" in line for line in (request[-1], job[-1]))
    assert '"status": "done"' in job[-1]


@pytest.mark.parametrize("keyed", [False, True])
def test_beyond_loopback_it_listens_only_where_there_are_keys(url_of_sqlite, tmp_path, keyed):
    key = ROOT_KEY if keyed else ""
    with process(
        tmp_path,
        url_of_sqlite,
        "--host",
        "0.0.0.0",  # noqa: S104
        "--no-link",
        RETOMA_API_KEY=key,
    ) as server:
        if keyed:
            listening(server)
            return
        assert Exit.USAGE == server.child.wait(60)
        assert "retoma keys create" in server.err.read_text()
        assert "listens" not in server.said


@pytest.fixture
def url_of_sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'work.db'}"


@pytest.mark.parametrize(
    ("environment", "rule"),
    [
        ({"RETOMA_API_KEY": "short"}, "32"),
        ({"RETOMA_PUBLIC_URL": "ftp://x/y"}, "RETOMA_PUBLIC_URL"),
        ({"RETOMA_SERVE_PORT": "70000"}, "RETOMA_SERVE_PORT"),
        ({"RETOMA_BEAT": "60"}, "RETOMA_LEASE"),
    ],
)
def test_row_35_settings_that_break_a_rule_do_not_start(
    url_of_sqlite, tmp_path, environment, rule
):
    words = [] if "RETOMA_SERVE_PORT" in environment else ["--port", "0"]
    done = nursery.run(
        [sys.executable, "-m", "retoma", "serve", *words],
        cwd=tmp_path,
        env={**os.environ, "RETOMA_DATABASE_URL": url_of_sqlite, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )

    assert Exit.USAGE == done.returncode, done.stderr
    assert rule in done.stderr
    assert 1 == len(done.stderr.strip().splitlines())


def test_a_port_that_is_taken_is_said_in_one_line(url_of_sqlite, tmp_path):
    with process(tmp_path, url_of_sqlite, "--no-link") as server:
        listening(server)
        port = server.origin.rpartition(":")[2]
        with process(tmp_path, url_of_sqlite, "--port", port) as second:
            assert Exit.UNAVAILABLE == second.child.wait(60)
            assert f"port {port}" in second.err.read_text()


def test_an_answer_that_never_ends_does_not_keep_the_server(database_url):
    """DRAIN seconds after it was told to stop, whoever still listens is let go; `served` sees it end."""
    endless = router("endless")

    @endless.get("/api/stream/endless", dependencies=[Anybody])
    async def stream() -> StreamingResponse:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"first"
            await asyncio.Event().wait()

        return StreamingResponse(chunks())

    with ExitStack() as open_until_it_has_ended:
        with served(database_url, routers=[endless]) as server:
            answer = open_until_it_has_ended.enter_context(
                httpx2.stream("GET", f"{server.origin}/api/stream/endless", timeout=60)
            )
            rest = answer.iter_raw()
            assert b"first" == next(rest)

        with pytest.raises((httpx2.TransportError, StopIteration)):
            next(rest)


# — what a runner need not know —


@pytest.mark.parametrize(
    "module", ["retoma", "retoma.bootstrap", "retoma.cli.runner", "retoma.manifest"]
)
def test_a_runner_never_imports_the_web(module):
    code = (
        f"import sys, {module}; print(sorted(set(sys.modules) &"
        " {'fastapi', 'starlette', 'uvicorn', 'retoma.web', 'numpy'}))"  # numpy is the embeddings'
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert "[]" == done.stdout.strip()
