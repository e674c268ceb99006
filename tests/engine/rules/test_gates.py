"""Gates, purely: what a limit means, and who of those a claim meets may run (E16)."""

from dataclasses import dataclass
from typing import Any

import pytest

from retoma import BadInput, Limit
from retoma.engine.rules.gates import Met, admit, joined, limits_of, parted


@dataclass(frozen=True)
class Page:
    site: str


def met(job: int, *keys: str, batch: int | None = None, suspect: bool = False) -> Met:
    return Met(job, suspect, batch, joined(keys))


def verdict(*waiting: Met, slots: int = 10, suspects: int = 1, **room: int) -> Any:
    return admit(waiting, room=room, paused=frozenset({7}), slots=slots, suspects=suspects)


def test_as_many_run_as_there_is_room_in_the_order_they_stand():
    said = verdict(met(1, "a"), met(2), met(3, "a"), met(4, "b"), met(5, "a"), a=2, b=0)

    assert [1, 2, 3] == said.run
    assert [(4, "limit:b"), (5, "limit:a")] == said.aside


def test_what_is_set_aside_by_one_gate_takes_no_room_at_another():
    said = verdict(met(1, "a", "b"), met(2, "a"), a=1, b=0)

    assert ([2], [(1, "limit:b")]) == (said.run, said.aside)


def test_a_paused_batch_lets_none_of_its_jobs_run():
    said = verdict(met(1, batch=7), met(2, batch=8))

    assert ([2], [(1, "batch:7")]) == (said.run, said.aside)


def test_without_a_slot_a_job_that_may_run_stays_where_it_stands():
    said = verdict(met(1), met(2, "a"), met(3, "b"), slots=1, a=1, b=0)

    assert ([1], [(3, "limit:b")]) == (said.run, said.aside)


def test_a_suspect_takes_the_place_of_suspects_alone():
    said = verdict(met(1, suspect=True), met(2, suspect=True), met(3), slots=1)

    assert [1, 3] == said.run


def test_a_limit_lowered_below_what_runs_lets_nobody_start():
    assert [(1, "limit:a")] == verdict(met(1, "a"), a=-2).aside


def test_a_limit_that_is_not_there_holds_nobody():
    assert [1] == verdict(met(1, "gone")).run


@pytest.mark.parametrize(
    ("limit", "key"),
    [
        (Limit(3), "kind:scrape"),
        (Limit(3, per="site"), "site:x"),
        (Limit(3, key=lambda page: page.site), "scrape:x"),
        (Limit(3, per="host", key=lambda page: page.site * 2), "host:xx"),
        (Limit(3, key=lambda _: None), None),
    ],
)
def test_the_key_of_a_limit(limit, key):
    assert key == limit.key_of("scrape", Page("x"))


def test_a_plain_payload_has_its_key_too():
    assert "site:x" == Limit(3, per="site").key_of("scrape", {"site": "x"})


@pytest.mark.parametrize("cap", [0, -1, 1.5, "3", None, True, 10**9])
def test_a_cap_that_makes_no_sense_is_refused(cap):
    with pytest.raises(BadInput, match="jobs run at once"):
        Limit(cap)


@pytest.mark.parametrize("per", ["", "a\nb", "x" * 201, "kind", 3])
def test_a_name_that_makes_no_sense_is_refused(per):
    with pytest.raises(BadInput):
        Limit(3, per=per)


@pytest.mark.parametrize(
    ("limit", "payload"),
    [
        (Limit(3, per="site"), {"page": 1}),
        (Limit(3, per="site"), 17),
        (Limit(3, key=lambda page: page["site"]), None),
        (Limit(3, key=lambda _: ["x"]), None),  # type: ignore[arg-type, return-value]
        (Limit(3, key=lambda _: "a\nb"), None),
        (Limit(3, key=lambda _: "x" * 300), None),
    ],
)
def test_a_payload_without_a_key_is_refused(limit, payload):
    with pytest.raises(BadInput):
        limit.key_of("scrape", payload)


def test_two_limits_of_one_sort_are_refused():
    assert 2 == len(limits_of("scrape", [3, Limit(1, per="site")]))
    with pytest.raises(BadInput, match="same sort"):
        limits_of("scrape", [3, Limit(1)])


def test_keys_are_stored_and_read_back():
    assert ("kind:a", "site:b") == parted(joined(["kind:a", "site:b"]))
    assert () == parted(joined([]))
