"""Whatever is asked over the whole of the API: no 5xx, no undocumented status, no answer of another shape."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from retoma.access import Role
from retoma.grants import Program
from retoma.web.site import STREAMS
from tests.cost.programs import program
from tests.house.files import ROOT
from tests.roles import roles
from tests.web import rejections
from tests.web.aids import ROOT_KEY, served
from tests.web.living import APPLICATIONS
from tests.web.refusals import refusals

GATE = 250  # cases on each of the two databases
SOAK = 5_000
CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
HEADERS = {"x-api-key": ROOT_KEY}


def operations_of(origin: str) -> list[Any]:
    """Those of which there is little to ask first: what they leave goes to the others."""
    document = httpx2.get(f"{origin}/openapi.json", timeout=60).json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=origin)
    every: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    # A stream never ends: tests/web/test_stream.py asks for it, well and badly.
    found = [operation for operation in every if operation.path not in STREAMS]
    return sorted(found, key=lambda each: (bool(each.body), varies(each)))


def varies(operation: Any) -> bool:
    return any(operation.iter_parameters()) or bool(operation.body)


def fill(origin: str) -> None:
    """Something for the questions to be about."""
    with httpx2.Client(base_url=origin, headers=HEADERS, timeout=60) as house:
        for n in range(3):
            house.post("/api/jobs", json={"kind": "count", "payload": n}).raise_for_status()
        house.post(
            "/api/batches", json={"kind": "count", "payloads": [1, 2]}
        ).raise_for_status()
        house.put("/api/limits", json={"key": "site:a", "cap": 1}).raise_for_status()


def ask(operation: Any, examples: int, mode: GenerationMode) -> int:
    """So many cases of one operation, each checked; how many that were."""
    asked = 0

    @seeded(7)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        nonlocal asked
        asked += 1
        case.call_and_validate(headers=HEADERS, checks=CHECKS, timeout=60)

    run()
    return asked


def examine(url: str, total: int) -> int:
    asked = 0
    with served(url) as server:
        fill(server.origin)
        operations = operations_of(server.origin)
        for left, operation in zip(range(len(operations), 0, -1), operations, strict=True):
            each = max(-(-(total - asked) // left), 2)
            asked += ask(operation, -(-each // 2), GenerationMode.POSITIVE)
            if varies(operation):
                asked += ask(operation, each // 2, GenerationMode.NEGATIVE)
    return asked


@pytest.fixture
def web_url(database_url: str) -> Iterator[str]:
    """As `retoma serve` should log in: on PostgreSQL with the least rights that it needs."""
    if database_url.startswith("sqlite:"):
        yield database_url
        return
    with roles(database_url) as login:
        yield login(Program.WEB)


@pytest.mark.timeout(300)
def test_no_case_of_the_gate_breaks_the_api(web_url):
    assert GATE <= examine(web_url, GATE)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_case_of_the_soak_breaks_the_api(web_url):
    assert SOAK <= examine(web_url, SOAK)


def test_every_operation_says_all_it_should():
    from tests.web.test_sign_in import site_with

    document = site_with().openapi()
    roles = {"anybody", *Role}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            where = f"{method} {path}"
            assert operation["x-role"] in roles, where
            assert operation.get("description"), where
            wanted = {"400", "422", "429", "503"}
            if operation["x-role"] != "anybody":
                wanted |= {"401", "403"}
                assert operation["security"], where
            if method in ("post", "put", "delete"):
                wanted |= {"409", "415", "507"}
            assert wanted <= operation["responses"].keys(), where
            assert all(each.get("description") for each in operation["responses"].values()), (
                where
            )
    assert "HTTPValidationError" not in json.dumps(document)


def test_what_may_be_asked_is_what_the_document_says():
    from tests.web.test_sign_in import site_with

    site = site_with()
    for (method, path), names in site.state.house.queries.items():
        told = site.openapi()["paths"][path][method].get("parameters", [])
        assert names == {each["name"] for each in told if each["in"] == "query"}, path


def test_what_asks_without_a_key_is_refused_everywhere(url_of_one):
    """Deny by default: every operation that is not for anybody, asked by nobody. Numbers alone are
    open while only this machine can reach us."""
    open_near = set()
    with (
        served(url_of_one) as server,
        httpx2.Client(base_url=server.origin, timeout=60) as nobody,
    ):
        document = nobody.get("/openapi.json").json()
        for path, item in document["paths"].items():
            for method, operation in item.items():
                if operation["x-role"] == "anybody":
                    continue
                if {} in operation["security"]:
                    open_near.add(path)
                    continue
                at = path.replace("{sha256}", "a" * 64)
                for name in ("job", "batch", "key", "session", "name", "pool"):
                    at = at.replace(f"{{{name}}}", "1")
                answer = nobody.request(method, at)
                assert 401 == answer.status_code, (method, at, answer.text)
    assert {"/metrics"} == open_near


@pytest.fixture
def url_of_one(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'work.db'}"


# — every application, every check, every phase —

FRESH = 3  # seeds
# As RFC 6585 and RFC 9110 have it: what is wrong may also be too large.
REFUSED = "[400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, 431]"
CONFIG = f"""
[auth.openapi.key]
api_key = "{ROOT_KEY}"
[auth.openapi.bearer]
bearer = "{ROOT_KEY}"
[generation]
with-security-parameters = false
[checks]
negative_data_rejection.expected-statuses = {REFUSED}
[warnings]
enabled = false
"""


def examine_everything(folder: Path, url: str, seed: int, *words: str) -> None:
    """Let schemathesis itself ask `retoma serve` with every application."""
    (folder / "schemathesis.toml").write_text(CONFIG)
    house = {"RETOMA_APPLICATIONS": APPLICATIONS, "RETOMA_DATABASE_URL": url}
    with program(folder, "serve", module="tests.web.unlimited", **house) as running:
        command = [str(Path(sys.executable).with_name("schemathesis")), "run"]
        command += [f"{running.origin}/openapi.json", "--seed", str(seed), "--checks", "all"]
        command += ["--exclude-checks", "positive_data_acceptance", "--continue-on-failure"]
        command += [each for path in STREAMS for each in ("--exclude-path", path)]
        asked = subprocess.run(
            [*command, "--suppress-health-check", "all", "--no-shrink", *words],
            cwd=folder,
            env={
                **os.environ,
                "SCHEMATHESIS_HOOKS": "tests.web.schema_hooks",
                "PYTHONPATH": str(ROOT),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(asked.stdout[-600:])
        assert 0 == asked.returncode, asked.stdout[-20_000:]
        assert running.child.poll() is None


@pytest.mark.timeout(600)
def test_no_case_of_any_check_breaks_any_application(tmp_path):
    url = f"sqlite:///{tmp_path / 'work.db'}"
    examine_everything(
        tmp_path, url, 7, "--max-examples", "1", "--phases", "examples,fuzzing,stateful"
    )


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("which", range(FRESH))
def test_no_case_of_a_fresh_seed_breaks_any_application(tmp_path, database_url, which):
    """Seeds nobody has tried: the one that breaks something is in what is printed."""
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    examine_everything(tmp_path, database_url, seed, "--max-examples", "20")


def test_the_page_of_rejections_is_what_the_tests_take():
    assert rejections.written() == rejections.PAGE.read_text(encoding="utf-8"), (
        f"write it anew: {rejections.AGAIN}"
    )


def test_every_sentence_by_which_the_code_refuses_a_request_has_its_row():
    assert [] == rejections.unlisted(), f"give each a row in {rejections.__name__}"
    assert [] == rejections.outdated()


def test_sentences_are_found_wherever_they_come_from(tmp_path):
    (tmp_path / "door.py").write_text(
        """
NO_NAME = say("it has no name")

class Ours(BadInput): ...

def check(name):
    if not name:
        raise Ours(NO_NAME)
    why = say("is odd: {why}", why=_odd(name))
    raise BadInput(why)

def _odd(name):
    return say("has {n} letters", n=len(name))

def refuse(sentence):
    raise Refusal("bad_input", sentence)

def look(name):
    refuse(say("handed on to who refuses"))
    say("only shown to somebody")
    raise Refusal("not_found", say("there is no {name}", name=name))
""",
        encoding="utf-8",
    )

    assert {
        "it has no name",
        "is odd: {why}",
        "has {n} letters",
        "handed on to who refuses",
    } == refusals(tmp_path).keys()


def test_a_sentence_is_known_whatever_stands_in_it():
    reason = "matches.proxies is text of 0 to 200 characters, not 'a\n'; nothing was changed"
    assert [] == rejections.unknown_reasons({"detail": reason})


def test_a_reason_that_is_not_in_the_table_is_named():
    problem = {"detail": "x", "errors": [{"message": "has a NUL character"}, {"message": "no"}]}
    assert ["no"] == rejections.unknown_reasons(problem)
    assert ["x"] == rejections.unknown_reasons({"detail": "x"})
