"""What a library user imports is few names, and changes only on purpose: here and in the changelog."""

from pathlib import Path

import retoma

GOLDEN = Path(__file__).with_name("public_names.txt")
MOST = 23


def problems(exported: list[str], golden: list[str]) -> list[str]:
    found = [f"new: {name}" for name in exported if name not in golden]
    found += [f"gone: {name}" for name in golden if name not in exported]
    if exported != sorted(exported):
        found.append("not sorted")
    if len(exported) > MOST:
        found.append(f"{len(exported)} names are more than {MOST}")
    return found


def test_the_public_names_are_frozen():
    assert [] == problems(list(retoma.__all__), GOLDEN.read_text().split())


def test_every_public_name_is_there_and_says_what_it_is():
    for name in retoma.__all__:
        assert getattr(retoma, name).__doc__, name


def test_a_changed_list_is_seen():
    assert ["new: B"] == problems(["A", "B"], ["A"])
    assert ["gone: B"] == problems(["A"], ["A", "B"])
    assert ["not sorted"] == problems(["B", "A"], ["A", "B"])
    many = sorted(f"N{n}" for n in range(MOST + 1))
    assert [f"{MOST + 1} names are more than {MOST}"] == problems(many, many)
