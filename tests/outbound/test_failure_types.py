"""Every answer is one of: good, again, later, never, nobody knows (§6 row 31)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma import Permanent, Transient, Unsure
from retoma.engine.rules.errors import ENGINE_CODES
from retoma.outbound import FailureType, Outbound, Policy, Throttled
from retoma.outbound.failure_types import ANSWERS, classify_status, parse_retry_after
from tests.outbound.fakes import answer, serving

NOW = 1_794_744_000.0  # Sun, 15 Nov 2026 12:00:00 GMT


async def asked(status, method="GET", **rules):
    async with serving(answer(status, b"their words")) as server, Outbound() as out:
        policy = Policy.toward("x", server.url, private=True, **rules)
        return await out.request(policy, method, server.url)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (301, Permanent, "permanent"),
        (304, Permanent, "permanent"),
        (400, Permanent, "permanent"),
        (401, Permanent, "config"),
        (402, Permanent, "budget"),
        (403, Permanent, "permanent"),
        (404, Permanent, "permanent"),
        (407, Permanent, "config"),
        (408, Transient, "transient"),
        (425, Transient, "transient"),
        (429, Throttled, "throttled"),
        (451, Permanent, "permanent"),
        (500, Transient, "transient"),
        (501, Permanent, "permanent"),
        (502, Transient, "transient"),
        (503, Transient, "transient"),
        (504, Transient, "transient"),
        (520, Transient, "transient"),
        (529, Transient, "transient"),
        (600, Transient, "bad_answer"),
        (999, Transient, "bad_answer"),
    ],
)
async def test_a_status_is_a_failure_of_its_sort(status, kind, code):
    with pytest.raises(kind, match=f"^x: GET http://127.0.0.1: answered {status}$") as failed:
        await asked(status)

    assert (kind, code) == (type(failed.value), failed.value.code)
    assert code in ENGINE_CODES


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206])
async def test_a_success_is_an_answer(status):
    assert status == (await asked(status)).status


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((500, Unsure), (502, Unsure), (504, Unsure), (520, Unsure), (600, Unsure)),
        *((503, Transient), (429, Throttled), (400, Permanent), (401, Permanent)),
        *((408, Transient), (501, Permanent), (302, Unsure), (303, Unsure)),
    ],
)
async def test_e6_what_may_have_happened_is_never_said_not_to_have(status, kind):
    """To a step done once a Transient says: it did not happen. A 502 says nothing of the kind."""
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(kind) as failed:
            await asked(status, method)
        assert kind is type(failed.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(500, Unsure), (504, Unsure), (503, Transient), (429, Throttled), (404, Permanent)],
)
async def test_e6_a_question_that_is_paid_for_is_a_deed_too(status, kind):
    with pytest.raises(kind) as failed:
        await asked(status, paid=True)
    assert kind is type(failed.value)


async def test_a_purpose_may_have_a_table_of_its_own():
    own = {404: FailureType(Transient, "ERROR404"), 500: FailureType(Permanent, "ERROR500")}

    with pytest.raises(Transient) as not_yet:
        await asked(404, answers=own)
    with pytest.raises(Permanent) as never:
        await asked(500, "POST", answers=own)

    assert ("ERROR404", "ERROR500") == (not_yet.value.code, never.value.code)


async def test_a_status_somebody_waits_for_is_an_answer():
    async with serving(answer(404, b"their words")) as server, Outbound() as out:
        policy = Policy.toward("x", server.url, private=True)
        got = await out.get(policy, server.url, accept={404})

    assert (404, b"their words") == (got.status, got.body)


@given(st.integers(min_value=-5, max_value=10_000))
def test_every_status_has_a_sort(status):
    assert isinstance(classify_status(status, {}), FailureType)


def test_every_code_of_the_table_is_one_of_the_house():
    assert {sort.code for sort in ANSWERS.values()} <= set(ENGINE_CODES)


@pytest.mark.parametrize(
    ("said", "wait"),
    [
        ("30", 30.0),
        ("0", 1.0),
        ("-1", 1.0),
        ("9999999999", 900.0),
        ("1e400", 900.0),
        ("1.5", 1.5),
        ("nan", None),
        ("soon", None),
        ("", None),
        ("Sun, 15 Nov 2026 12:02:00 GMT", 120.0),
        ("Sun, 15 Nov 2026 12:02:00 -0000", 120.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 1.0),
        ("Sun, 15 Nov 2099 12:00:00 GMT", 900.0),
        ("Sun, 99 Nov 2026 12:00:00 GMT", None),
        ("Sun, 15 Nov 99999999999 12:00:00 GMT", None),
        ("\x00\xff", None),
    ],
)
def test_retry_after_is_heard_within_reason(said, wait):
    assert wait == parse_retry_after({"retry-after": said}, NOW)


def test_a_date_is_measured_by_the_clock_of_whoever_said_it():
    """Theirs is an hour behind ours, or ours ahead: the wait is two minutes all the same."""
    headers = {
        "retry-after": "Sun, 15 Nov 2026 11:02:00 GMT",
        "date": "Sun, 15 Nov 2026 11:00:00 GMT",
    }

    assert 120.0 == parse_retry_after(headers, NOW)


@given(st.text(), st.text())
def test_no_retry_after_harms_anybody(said, date):
    wait = parse_retry_after({"retry-after": said, "date": date}, NOW)

    assert wait is None or 1.0 <= wait <= 900.0


@pytest.mark.parametrize("status", [429, 503])
async def test_the_wait_reaches_whoever_tries_again(status):
    async with serving(answer(status, retry_after="17")) as server, Outbound() as out:
        with pytest.raises(Transient) as failed:
            await out.get(Policy.toward("x", server.url, private=True), server.url)

    assert 17.0 == failed.value.retry_after


async def test_nobody_there_is_no_answer():
    async with serving() as server:
        policy = Policy.toward("x", server.url, private=True)
    async with Outbound() as out:
        for method in ("GET", "POST"):  # nothing was sent, so nothing happened
            with pytest.raises(Transient, match="cannot connect") as failed:
                await out.request(policy, method, server.url)

    assert "no_answer" == failed.value.code
