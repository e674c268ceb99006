"""A secret is `***` wherever it may turn up, until somebody asks for it by name."""

import asyncio
import copy
import io
import json
import logging
import pickle
import traceback
from dataclasses import asdict, dataclass, replace

import pytest
import structlog

from retoma import logs
from retoma.codec import Unstorable, encode
from retoma.secret import Secret

CANARY = "CANARY-0a1b2c3d4e5f"


@dataclass(frozen=True, slots=True)
class Worker:
    url: str
    key: Secret


@pytest.fixture
def canary():
    return Secret(CANARY)


@pytest.fixture(autouse=True)
def _leave_no_trace():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level


def test_e27_it_says_nothing_of_itself(canary):
    worker = Worker("https://w", canary)
    said = [
        repr(canary),
        str(canary),
        f"{canary}",
        f"{canary!r:>10}",
        "%s" % canary,  # noqa: UP031
        repr(worker),
        str(asdict(worker)),
        repr(replace(worker, url="x")),
        repr([canary, {"a": canary}]),
        json.dumps({"key": canary}, default=str),
        repr(ValueError(canary)),
        str(copy.deepcopy(worker)),
    ]

    assert [] == [each for each in said if "CANARY" in each]
    assert all("***" in each for each in said)
    assert CANARY == canary.reveal()
    assert not hasattr(canary, "__dict__")


def test_secrets_are_compared_by_what_they_are(canary):
    assert canary == Secret(CANARY)
    assert canary != Secret("another")
    assert canary != CANARY
    assert 1 == len({canary, Secret(CANARY)})


def test_it_neither_travels_nor_is_stored(canary):
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Worker("x", canary))
    with pytest.raises(Unstorable) as refused:
        encode({"key": canary})

    assert "CANARY" not in str(refused.value)
    assert "CANARY" not in repr(refused.value.whole)


def test_an_empty_one_is_refused():
    with pytest.raises(ValueError, match="must not be empty"):
        Secret("")


@pytest.mark.parametrize("person", [False, True])
async def test_e27_no_log_line_has_it_however_it_got_there(canary, person):
    class Stream(io.StringIO):
        def isatty(self):
            return person

    out = Stream()
    logs.configure("debug", out)
    log = structlog.get_logger().bind(bound=CANARY)
    plain = canary.reveal()

    log.info("told", text=f"a {plain} b", deep=[{"x": (plain, plain.encode())}], worker=canary)
    log.info(plain, **{plain: 1})
    log.info("named", password="other", headers={"Authorization": "Bearer other"})  # noqa: S106
    try:
        raise ValueError(f"answered 401: {plain}") from KeyError(plain)
    except ValueError:
        log.exception("broke", error=ValueError(plain))
        logging.getLogger("elsewhere").exception("also %s", plain)
    logging.getLogger("httpx2").warning("GET https://x/?key=%s&a=%s", "unknown-one", plain)
    await asyncio.sleep(0)

    said = out.getvalue()
    assert said.count("\n") >= 6
    assert "CANARY" not in said
    assert "other" not in said
    assert "unknown-one" not in said
    assert "ValueError: answered 401: ***" in said


def test_e27_a_stack_with_its_text_is_redacted_too(canary):
    from retoma.secret import redact_text

    try:
        raise RuntimeError(canary.reveal())
    except RuntimeError:
        stack = redact_text(traceback.format_exc())

    assert "CANARY" not in stack
    assert "RuntimeError: ***" in stack
