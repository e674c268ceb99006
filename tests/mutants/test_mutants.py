"""Each mutant applies to the code as it is, and is killed; and the laboratory itself can be wrong in no way."""

import pytest

from tests.conftest import postgres_address
from tests.mutants.catalog import MUTANTS, Mutant
from tests.mutants.edit import SOURCE, Edit, Stale, apply_all
from tests.mutants.killers import ByTest, ByUniverses, Killer
from tests.mutants.play import Laboratory, chosen, laboratory

NAMES = [
    *(f"M{n:02}" for n in range(1, 25)),
    *(f"D{n}" for n in range(1, 10)),
    *(f"R{n}" for n in range(1, 14)),
    *("U1", "U2"),
]
BACKOFF = "retoma.engine.rules.retry:backoff"
WAITS = (
    "tests/engine/rules/test_retry.py"
    "::test_e15_without_jitter_each_wait_is_the_double_of_the_last_up_to_the_cap"
)


def test_every_promise_and_every_defect_that_was_cured_has_its_mutant():
    assert NAMES == [each.name for each in MUTANTS]
    assert all(each.killers for each in MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)
def test_a_mutant_applies(mutant):
    changed = apply_all(mutant.edits)

    assert {edit.path for edit in mutant.edits} == set(changed)


@pytest.mark.parametrize(
    ("where", "old", "why"),
    [
        ("retoma.engine.rules.retry:no_such", "x", "'no_such' is defined 0 times"),
        ("retoma.engine.rules.retry:Retry.no_such", "x", "'no_such' is defined 0 times"),
        ("retoma.engine.no_such:backoff", "x", "there is no file retoma/engine/no_such.py"),
        ("sql:no_such", "x", "there are 0 such sections"),
        (BACKOFF, "no such text", "is there 0 times"),
        (BACKOFF, "full", r"is there \d+ times"),
        (
            "retoma.engine.rules.retry:retry_after",
            "rng.uniform(shortest, longest)",
            "is there 0 times",
        ),
    ],
)
def test_a_mutant_that_no_longer_applies_says_so(where, old, why):
    with pytest.raises(Stale, match=why):
        apply_all([Edit(where, old, "y")])


def test_an_edit_that_is_no_python_is_refused():
    with pytest.raises(SyntaxError):
        apply_all([Edit(BACKOFF, "return min(", "return min((")])


def test_only_its_function_is_changed():
    edit = Edit(BACKOFF, "rng.uniform(shortest, longest)", "shortest")
    before = (SOURCE / edit.path).read_text().splitlines()
    [changed] = apply_all([edit]).values()

    [(was, is_now)] = {
        each for each in zip(before, changed.splitlines(), strict=True) if each[0] != each[1]
    }

    assert was.strip() == "return min(longest, rng.uniform(shortest, longest))"
    assert is_now.strip() == "return min(longest, shortest)"


def mutant_of(new: str, *killers: Killer) -> Mutant:
    edit = Edit(BACKOFF, "return min(longest, rng.uniform(shortest, longest))", new)
    return Mutant("planted", "how long a job waits", (edit,), killers)


@pytest.fixture(scope="module")
def lab():
    """Without a server: what is cheap is killed on SQLite."""
    with laboratory("-k", "not postgres") as made:
        yield made


def wrong(lab: Laboratory, mutant: Mutant) -> list[str]:
    return [f"{each.killer.name}: {each.wrong}" for each in lab.play([mutant]) if each.wrong]


@pytest.mark.timeout(300)
def test_a_mutant_that_lives_is_found(lab):
    """One that changes nothing, one that breaks more than it should, and one whose test is gone."""
    same = mutant_of("return 0.0 + min(longest, rng.uniform(shortest, longest))", ByTest(WAITS))
    broken = mutant_of("raise ImportError", ByTest(WAITS, "assert 1 =="))
    missing = mutant_of("return -1.0", ByTest("tests/engine/rules/test_retry.py::test_no_such"))

    found = [wrong(lab, each) for each in (same, broken, missing)]

    assert [f"{WAITS}: survived"] == found[0]
    assert found[1][0].startswith(f"{WAITS}: red, but not as it should")
    assert found[2][0].startswith(
        "tests/engine/rules/test_retry.py::test_no_such: red without the mutant"
    )


@pytest.mark.timeout(1800)
def test_cheap_mutants_are_killed(lab):
    cheap = [each for each in MUTANTS if each.cheap]

    assert len(cheap) >= 8
    assert [] == [str(each) for each in lab.play(cheap) if each.wrong]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_mutant_is_killed():
    postgres_address()

    with laboratory() as lab:
        assert [] == [str(each) for each in lab.play(MUTANTS) if each.wrong]


def test_a_name_that_nobody_knows_is_refused():
    assert ["M03", "D1"] == [each.name for each in chosen(["M03", "D1"])]
    with pytest.raises(SystemExit, match="there is no mutant M99"):
        chosen(["M99"])


def test_universes_that_kill_are_few_enough():
    """A goal of the promises: each mutant within 1,000 universes or 60 s."""
    used = [k for m in MUTANTS for k in m.killers if isinstance(k, ByUniverses)]

    assert used
    assert all(each.most <= 1_000 for each in used)
