"""Rows of another database become rows of ours; which did is written down with them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from retoma import db
from retoma.apps.ads.model import Event
from retoma.apps.ads.store.rows import SQL, numbers, tell
from retoma.engine.run.transaction import Transaction
from retoma.toolkit.foreign import as_kept

TIMES = ("created_at", "queued_at", "started_at", "finished_at", "at")


def adopted(
    tx: db.Transaction, source: str, sort: str, first: str = "", last: str | None = None
) -> dict[str, str | None]:
    """What each became."""
    return dict(tx.all(SQL.adopted, source=source, sort=sort, first=first, last=last))


def remember(
    tx: Transaction, source: str, sort: str, ids: Mapping[str, str | None]
) -> set[str]:
    """Those of them that nobody had taken over before."""
    rows = json.dumps([{"old": old, "new": new} for old, new in ids.items()])
    return {*tx.all(SQL.adopt_ids, into=str, source=source, sort=sort, rows=rows)}


def adopt_missions(
    tx: Transaction, source: str, missions: Mapping[str, Mapping[str, Any]], *, actor: str
) -> dict[str, str]:
    """By their old ids; ours are new, in the order in which they were made."""
    numbers(tx, "MIS", 0)  # whoever adopts at the same time waits here
    known = adopted(tx, source, "missions")
    new = {old: told for old, told in missions.items() if old not in known}
    if not new:
        return {}
    ids = dict(zip(new, numbers(tx, "MIS", len(new)), strict=True))
    rows = [_row(tx, {**told, "id": ids[old]}) for old, told in new.items()]
    tx.run(SQL.adopt_missions, rows=json.dumps(rows), actor=actor)
    remember(tx, source, "missions", ids)
    for old, told in new.items():
        if told["ended"]:
            why = {"error_code": told["error_code"], "error_message": told["error_message"]}
            why |= {"retry_count": told["scrape_retries"]}
            tell(tx, Event.MISSION_FAILED, why, mission=ids[old])
    return ids


def adopt_logs(tx: Transaction, source: str, logs: Mapping[str, Mapping[str, Any]]) -> int:
    """By their old ids; how many were new."""
    new = remember(tx, source, "mission_logs", dict.fromkeys(logs))
    rows = [_row(tx, told) for old, told in logs.items() if old in new]
    if rows:
        tx.run(SQL.adopt_logs, rows=json.dumps(rows))
    return len(rows)


def _row(tx: Transaction, told: Mapping[str, Any]) -> dict[str, Any]:
    """Times as this database keeps them."""
    at = {name: as_kept(tx.dialect, told[name]) for name in TIMES if name in told}
    return {**told, **at}


def in_order(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """As they were made; what has no time stands first."""
    return sorted(rows, key=lambda row: (str(row.get("created_at") or ""), str(row["id"])))
