"""`retoma upgrade --check`, as a person types it."""

import asyncio
import json
from typing import Final

from tests.test_upgrade import build_before, build_now, in_flight

BEFORE: Final = "tests.cli.test_upgrade:before"
NOW: Final = "tests.cli.test_upgrade:now"
before = build_before("sqlite:///nowhere.db")
now = build_now("sqlite:///nowhere.db")


def test_it_ends_with_one_where_something_is_not_understood(verb, url):
    asyncio.run(in_flight(url))

    well = verb("upgrade", "--check", "--app", BEFORE, "--database", url)
    badly = verb("upgrade", "--check", "--app", NOW, "--database", url)
    told = verb("upgrade", "--check", "--app", NOW, "--database", url, "--json")
    unsaid = verb("upgrade", "--app", NOW, "--database", url)
    nothing = verb("upgrade", "--check")

    assert (0, True) == (well.code, "understands all 5 jobs" in well.out)
    assert (1, True) == (badly.code, "quote@1" in badly.out)
    assert (1, 5) == (told.code, len(json.loads(told.out)["findings"]))
    assert (2, 2) == (unsaid.code, nothing.code)
    assert "--check" in unsaid.err
