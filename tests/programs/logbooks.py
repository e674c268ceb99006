"""What workers' own logs prove: for tests of whoever commands them.

    assert [] == doubled([folder / "worker.jsonl" for folder in folders])

Lines of many workers are read in the order of their times, which all come from one machine.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.lines import whole_lines


def lines(logs: Iterable[Path]) -> list[dict[str, Any]]:
    """All that was told, oldest first; each line says whose it is."""
    found = [
        {"worker": place, **json.loads(text)}
        for place, log in enumerate(logs)
        if log.exists()
        for text in whole_lines(log)
    ]
    return sorted(found, key=lambda line: str(line["at"]))  # stable: one worker's stay in order


def doubled(logs: Iterable[Path]) -> list[str]:
    """Where there were two at a time: sessions on a proxy (M3) or of a worker, scrapes of a worker
    or for the same ads (M1)."""
    live: dict[str, set[str]] = defaultdict(set)
    problems = []
    for line in lines(logs):
        what, _, happened = line["event"].partition(".")
        if (what, happened) not in (("session", "began"), ("scrape", "began")):
            if happened == "ended":
                for names in live.values():
                    names.discard(_name(line, what))
            continue
        for place in _places(line, what):
            if live[place]:
                problems.append(f"{place}: {_name(line, what)} beside {sorted(live[place])}")
            live[place].add(_name(line, what))
    return problems


def left(logs: Iterable[Path]) -> list[str]:
    """Sessions and scrapes that nobody has ended (M10)."""
    live: dict[str, None] = {}
    for line in lines(logs):
        what, _, happened = line["event"].partition(".")
        if happened == "began":
            live[_name(line, what)] = None
        elif happened == "ended":
            live.pop(_name(line, what), None)
    return list(live)


def overworked(logs: Iterable[Path], limit: int) -> list[str]:
    """Sessions with more scrapes than they may have (M8)."""
    served: dict[str, int] = defaultdict(int)
    for line in lines(logs):
        if line["event"] == "scrape.began":
            served[str(line["session"])] += 1
    return [f"{session}: {n} scrapes" for session, n in served.items() if n > limit]


def unrotated(logs: Iterable[Path], proxies: Iterable[str], after: int = 0) -> list[str]:
    """Sessions by the proxy of the worker's last one, although another was free (M8). For calm worlds: who
    dies between the end of a session and the letting go of its proxy still holds it, and no log says so."""
    live: dict[str, str] = {}  # by session
    last: dict[int, str] = {}  # by worker
    every, problems = set(proxies), []
    for line in lines(logs)[after:]:
        if line["event"] == "session.ended":
            live.pop(str(line["session"]), None)
        elif line["event"] == "session.began":
            free = every - set(live.values()) - {line["proxy"]}
            if last.get(line["worker"]) == line["proxy"] and free:
                problems.append(
                    f"{line['session']}: {line['proxy']} again, {sorted(free)} free"
                )
            last[line["worker"]] = live[str(line["session"])] = line["proxy"]
    return problems


def _name(line: dict[str, Any], what: str) -> str:
    return str(line["session" if what == "session" else "job_id"])


def _places(line: dict[str, Any], what: str) -> list[str]:
    if what == "session":
        return [f"proxy {line['proxy']}", f"session of worker {line['worker']}"]
    asked = json.dumps(line["filters"], sort_keys=True)
    return [f"scrape of worker {line['worker']}", f"ads {asked}"]
