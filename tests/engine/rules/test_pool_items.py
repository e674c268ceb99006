"""Who is dealt which thing of a pool, purely (E17)."""

from typing import Any

from retoma.engine.rules.job import Held, Scope
from retoma.engine.rules.pool_items import Free, Taking, deal


def wanting(job: int, **how: Any) -> Taking:
    return Taking(Held(job, 1), 1, "pool", Scope.ATTEMPT, **how)


def free(id_: int, last_job: int | None = None, used_at: int | None = None) -> Free:
    return Free(id_, f"thing {id_}", "null", last_job, used_at)


def dealt(jobs: list[int], *things: Free) -> list[int | None]:
    return [
        None if each is None else each.id
        for each in deal([wanting(job) for job in jobs], things)
    ]


def test_one_for_each_as_they_stand():
    assert [1, 2, 3] == dealt([7, 8, 9], free(1), free(2), free(3), free(4))


def test_who_comes_when_none_is_left_gets_none():
    assert [1, None, None] == dealt([7, 8, 9], free(1))
    assert [None] == dealt([7])


def test_not_the_one_a_job_had_last_if_there_is_another():
    assert [2] == dealt([7], free(1, last_job=7, used_at=5), free(2))
    assert [2, 1] == dealt([7, 8], free(1, last_job=7, used_at=5), free(2))


def test_the_one_it_had_last_where_there_is_no_other():
    assert [1] == dealt([7], free(1, last_job=7, used_at=5))


def test_what_it_had_before_the_last_may_come_again():
    assert [1] == dealt([7], free(1, last_job=7, used_at=5), free(2, last_job=7, used_at=6))
    assert [2] == dealt([7], free(1, last_job=7, used_at=6), free(2, last_job=7, used_at=5))


def test_who_shuns_one_gets_another_if_there_is_one():
    shunning = [wanting(7, shuns="thing 1")]

    assert [2] == [each.id for each in deal(shunning, [free(1), free(2)]) if each]
    assert [1] == [each.id for each in deal(shunning, [free(1)]) if each]
