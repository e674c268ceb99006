"""A job as others see it, and as the runner that holds it does."""

import re

import pytest

from retoma.engine.rules.job import SUSPECT_AFTER, Claim, Held, Job, StepId
from retoma.engine.rules.states import ENDED, State
from tests.house.sections import text_of

CLAIM = Claim(7, 2, "work", 1, None, 1, 1, 1, 0, 0, None, None, None, "null", "work", 0, 3)


@pytest.mark.parametrize("state", State)
def test_a_job_has_ended_where_its_state_says_so(state):
    assert (state in ENDED) is Job(id=1, kind="work", state=state).ended


@pytest.mark.parametrize(("lost", "suspect"), [(0, False), (1, False), (2, True), (3, True)])
def test_two_losses_without_progress_make_a_suspect(lost, suspect):
    assert 2 == SUSPECT_AFTER
    assert suspect is Job(id=1, kind="work", state=State.WAITING, lost=lost).suspect
    assert suspect is CLAIM._replace(lost=lost).suspect


def test_a_buried_job_is_no_suspect_any_more():
    assert not Job(id=1, kind="work", state=State.DEAD, lost=3).suspect


def test_a_claim_holds_its_job_under_its_epoch():
    assert Held(7, 2) == CLAIM.held
    assert CLAIM.held != CLAIM._replace(epoch=3).held


def test_a_step_is_itself_by_name_version_and_key():
    assert StepId("read") == StepId("read", 1, "")
    assert 4 == len({StepId("a"), StepId("b"), StepId("a", 2), StepId("a", 1, "k")})


def returned(section: str) -> list[str]:
    """Return the columns that a section gives back, by its last RETURNING or SELECT."""
    text = text_of(*section.split("."))
    columns = re.split(r"\bRETURNING\b|\nSELECT\b", text.partition("\nUNION ALL")[0])[-1]
    flat = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", columns))
    listed = re.split(r"\bFROM\b|;", re.sub(r"\([^()]*\)", "", flat))[0]
    return [column.split()[-1].removeprefix("j.") for column in listed.split(",")]


@pytest.mark.parametrize(
    "section",
    [
        "claim_jobs.sqlite",
        "claim_jobs.postgres",
        "claim_met_jobs.sqlite",
        "claim_met_jobs.postgres",
        "recall_jobs.sqlite",
        "recall_jobs.postgres",
    ],
)
def test_a_claim_is_read_in_the_order_in_which_it_is_asked_for(section):
    names = ["job" if name == "id" else name for name in returned(section)]

    assert list(Claim._fields) == [
        *names,
        "things",
    ]  # those come with the claim, from elsewhere
