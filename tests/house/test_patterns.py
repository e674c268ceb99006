"""What every Python that we promise to run on reads alike."""

import re

from tests.house.files import SOURCE

# `(…)*+` and `(?>…)` match other things before Python 3.11.5; sets of characters, `[…]*+`, do not.
POSSESSIVE_GROUP = re.compile(r"\)[*+?]\+|\(\?>")


def test_no_pattern_has_a_possessive_group():
    found = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if POSSESSIVE_GROUP.search(path.read_text(encoding="utf-8"))
    ]

    assert [] == found
