"""What the services' own logs say of who was paid, held against what had to be. Pure.

A call may be made again only where nobody could know whether it had been: its intent was committed, its
answer was not, and its runner was gone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from retoma.apps.quotes.model import NEXT, ProcessingCheckpoint

C = ProcessingCheckpoint
Calls = Counter[tuple[str, int]]  # by service and by the number of what was asked about
Line = Mapping[str, Any]

SERVICE = {C.AI_ANALYSIS_START: "anthropic", C.SHOPPING_SEARCH_START: "serpapi"}
OF_PAGE = re.compile(r"/p/(\d+)(?:-|[A-Z]{2})\d+$")
NEEDED = {
    "vehicle": [C.AI_ANALYSIS_START, C.AI_ANALYSIS_DONE, C.FIPE_SEARCH, C.FINALIZATION],
    "product": [
        *(C.AI_ANALYSIS_START, C.AI_ANALYSIS_DONE, C.SHOPPING_SEARCH_START),
        *(C.SHOPPING_SEARCH_DONE, C.PRICE_EXTRACTION_START, C.PRICE_EXTRACTION_PROGRESS),
        *(C.PRICE_EXTRACTION_DONE, C.FINALIZATION),
    ],
}


def paid(service: str, lines: Iterable[Line]) -> Calls:
    return Counter((service, line["item"]) for line in lines if line.get("paid"))


def pages(lines: Iterable[Line]) -> Counter[str]:
    return Counter(line["path"] for line in lines)


def item_of(path: str) -> int | None:
    found = OF_PAGE.search(path)
    return None if found is None else int(found[1])


def about(line: Line) -> int | None:
    """The number of what a request asks about."""
    return line["item"] if "item" in line else item_of(line["path"])


def overpaid(found: Calls, unknown: Calls, needed: Calls) -> list[str]:
    """Q1: once each, and once more for every time nobody knew."""
    return [
        f"Q1: {service} was paid {times} times for {item}, {unknown[service, item]} unknown"
        for (service, item), times in found.items()
        if times > needed.get((service, item), 1) + unknown[service, item]
    ]


def asked_again(found: Counter[str], allowed: Counter[int]) -> list[str]:
    """A page that was kept is not fetched again; `allowed`: of what was on its way at a kill."""
    again: Counter[int] = Counter()
    for path, times in found.items():
        again[item_of(path) or -1] += times - 1
    return [
        f"{times} pages of {item} were fetched again, {allowed[item]} were on their way"
        for item, times in again.items()
        if times > allowed[item]
    ]


def off_the_diagram(job: int, names: Iterable[str], *, done: bool) -> list[str]:
    """Q2: each follows from the one before it; a vehicle never by the shops, nor a product by FIPE."""
    way = ["INIT", *names, *(["COMPLETED"] if done else [])]
    steps = [each for n, each in enumerate(way) if n == 0 or way[n - 1] != each]
    found = [
        f"Q2: quote of job {job} went from {before} to {after}"
        for before, after in pairwise(steps)
        if C(after) not in NEXT[C(before)]
    ]
    if {C.FIPE_SEARCH, C.SHOPPING_SEARCH_START} <= set(steps):
        found.append(f"Q2: quote of job {job} went both ways")
    return found


def unfounded(job: int, result: Any, steps: Iterable[str]) -> list[str]:
    """Q5: what is DONE has its result, and every step that makes one."""
    if not isinstance(result, dict) or result.get("price") is None:
        return [f"Q5: job {job} is done and has no price"]
    missing = set(NEEDED[result["branch"]]) - {C(each) for each in steps}
    return [f"Q5: job {job} is done without {sorted(missing)}"] if missing else []
