"""What is there already, by what people would call the same: nothing is added twice."""

from collections.abc import Hashable, Iterable, Sequence
from datetime import date
from typing import Any

from retoma.apps.ads.model import NewMission
from retoma.apps.ads.store.rows import SQL
from retoma.db import Transaction
from retoma.db.rows import read_json

Keys = Sequence[Hashable]


def proxy_keys(name: str | None, host: str, port: int | None, username: str | None) -> Keys:
    """By its name, or where it stands and for whom."""
    place = host if port is None else f"{host}:{port}"
    return [("name", name or place), ("place", host.lower(), port, username)]


def mission_key(
    start: date | str, end: date | str, media_type: str, languages: Iterable[str]
) -> Hashable:
    """Languages in any order are the same languages."""
    return str(start), str(end), str(media_type), tuple(sorted(set(languages)))


def known_proxies(tx: Transaction) -> dict[Hashable, str]:
    return {
        key: id_
        for id_, name, host, port, username in tx.all(SQL.known_proxies)
        for key in proxy_keys(name, host, port, username)
    }


def known_workers(tx: Transaction) -> dict[Hashable, str]:
    return {url: id_ for id_, url in tx.all(SQL.known_workers)}


def known_writers(tx: Transaction) -> dict[Hashable, str]:
    return {url: id_ for id_, url in tx.all(SQL.known_writers)}


def known_missions(tx: Transaction, wanted: Sequence[NewMission]) -> dict[Hashable, str]:
    if not wanted:
        return {}
    since = min(each.date_start for each in wanted).isoformat()
    until = max(each.date_end for each in wanted).isoformat()
    rows: Sequence[Any] = tx.all(SQL.known_missions, since=since, until=until)
    return {
        mission_key(start, end, media, read_json(languages)): id_
        for id_, start, end, media, languages in rows
    }


def unknown_missions(tx: Transaction, wanted: Sequence[NewMission]) -> list[NewMission]:
    """Those of them that are not there yet, each once."""
    known = set(known_missions(tx, wanted))
    new = []
    for each in wanted:
        key = mission_key(each.date_start, each.date_end, each.media_type, each.languages)
        if key not in known:
            known.add(key)
            new.append(each)
    return new
