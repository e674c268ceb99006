"""What counts under a limit cannot drift: whatever ends a claim gives its place back.

`used` is added to by the claim that goes past gates, in its own transaction, and by nobody else. A
claim ends where a statement takes the runner off the job; each of them is named here with the
function that gives back in the same transaction.
"""

import re
from pathlib import Path

from retoma.engine.store import runners
from retoma.engine.writing import group_writer as writer
from tests.house.sections import list_sections
from tests.house.test_sql import COMMENT

ENDS_CLAIM = re.compile(r"\brunner\s*=\s*NULL", re.IGNORECASE)
COUNTS = re.compile(r"\bUPDATE\s+limits\b[^;]*\bSET\b[^;]*\bused\s*=", re.IGNORECASE)
GIVES_BACK = {"settle_jobs": writer.__file__, "take_back_jobs": runners.__file__}


def verbs_with(pattern: re.Pattern[str], texts: dict[str, str]) -> set[str]:
    return {verb for verb, text in texts.items() if pattern.search(COMMENT.sub("", text))}


def texts() -> dict[str, str]:
    return {f"{each.name}.{each.dialect}": each.text for each in list_sections()}


def test_e16_whatever_ends_a_claim_gives_its_place_back():
    ending = {name.partition(".")[0] for name in verbs_with(ENDS_CLAIM, texts())}

    assert set(GIVES_BACK) == ending
    for verb, file in GIVES_BACK.items():
        assert "give_back(tx" in Path(file).read_text(), verb


def test_e16_one_verb_counts_what_runs():
    assert {"use_limits.sqlite", "use_limits.postgres"} == verbs_with(COUNTS, texts())


def test_a_statement_that_ends_a_claim_is_seen():
    planted = {
        "free.sql": "-- Let go of it.\nUPDATE jobs SET state = 'waiting', runner=null;",
        "told.sql": "-- runner = NULL: nobody has it.\nSELECT 1;",
        "drift.sql": "-- Count.\nUPDATE limits SET cap = 1, used = 0;",
    }

    assert {"free.sql"} == verbs_with(ENDS_CLAIM, planted)
    assert {"drift.sql"} == verbs_with(COUNTS, planted)
