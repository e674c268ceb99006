"""`retoma pause`, `resume` and `pauses`: what rests for a while."""

from typing import Any

from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.engine.ops.pauses import scope_of
from retoma.engine.store.pauses import SCOPES, Pause
from retoma.words import speak, tell


def pause(
    database: str | None, as_json: bool, what: str, name: str, *, why: str | None
) -> None:
    scope = scope_of(what)
    found, changed = ask(database, lambda app: app.pauses.pause(scope, name, why, actor=ACTOR))
    if as_json:
        print_json({**_document(found), "changed": changed})
        return
    said = {"scope": tell(SCOPES[scope]), "name": clean(name)}
    print(
        speak("{scope} {name} is paused: what runs ends", **said)
        if changed
        else speak(
            "{scope} {name} is paused already, since {since} UTC by {actor}",
            since=at(found.since),
            actor=clean(found.actor),
            **said,
        )
    )


def resume(database: str | None, as_json: bool, what: str, name: str) -> None:
    scope = scope_of(what)
    changed = ask(database, lambda app: app.pauses.resume(scope, name, actor=ACTOR))
    if as_json:
        print_json({"scope": scope, "name": name, "paused": False, "changed": changed})
        return
    said = {"scope": tell(SCOPES[scope]), "name": clean(name)}
    print(
        speak("{scope} {name} goes on", **said)
        if changed
        else speak("{scope} {name} was not paused", **said)
    )


def list_(database: str | None, as_json: bool) -> None:
    found = ask(database, lambda app: app.pauses.all())
    if as_json:
        print_json([_document(each) for each in found])
        return
    if not found:
        console().print(speak("nothing is paused"))
        return
    page = table(speak("what"), speak("name"), speak("since"), speak("by"), speak("why"))
    for each in found:
        page.add_row(
            tell(SCOPES[each.scope]),
            clean(each.name),
            at(each.since),
            clean(each.actor),
            clean(each.why or ""),
        )
    console().print(page)


def _document(pause: Pause) -> dict[str, Any]:
    return {
        "scope": pause.scope,
        "name": pause.name,
        "since": pause.since,
        "actor": pause.actor,
        "why": pause.why,
    }
