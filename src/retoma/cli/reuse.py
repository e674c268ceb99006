"""`retoma reuse`: results of steps that other jobs may use again, and forgetting them."""

import json
from typing import Any

from retoma.cli.prices import instant
from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.engine.rules.errors import BadInput
from retoma.words import say, speak


def list_(
    database: str | None, as_json: bool, *, kind: str | None, step: str | None, limit: int
) -> None:
    found = ask(database, lambda app: app.reuse.list(kind=kind, step=step, limit=limit))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("nothing to use again"))
        return
    page = table(
        speak("kind"),
        speak("step"),
        speak("key"),
        speak("from job"),
        speak("made"),
        speak("cost"),
    )
    for each in found:
        page.add_row(
            clean(each.kind),
            clean(f"{each.step}@{each.version}"),
            clean(each.key),
            str(each.job),
            at(each.at),
            clean("; ".join(_told(one) for one in each.cost or ())),
        )
    console().print(page)


def _told(charge: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in charge.items())


def forget(
    database: str | None,
    as_json: bool,
    *,
    kind: str | None,
    step: str | None,
    version: int | None,
    key: str | None,
    before: str | None,
    everything: bool,
) -> None:
    which: dict[str, Any] = {
        "kind": kind,
        "step": step,
        "version": version,
        "key": _read(key),
        "before": instant(before),
        "everything": everything,
    }
    gone = ask(database, lambda app: app.reuse.forget(**which, actor=ACTOR))
    if as_json:
        print_json({"forgotten": gone})
    else:
        print(speak("{n} results are forgotten; they are made anew when wanted", n=gone))


def _read(key: str | None) -> Any:
    if key is None:
        return None
    try:
        return json.loads(key)
    except ValueError:
        raise BadInput(
            say(
                "a key is given as JSON, such as '\"a text\"' or '{example}'",
                example='{"a": 1}',
            )
        ) from None
