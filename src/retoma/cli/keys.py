"""`retoma keys`: what programs come in with. A token is shown once, when it is made."""

import sys

from retoma.access import KeySeen, NewKey
from retoma.console.kit import ACTOR, ask, at, clean, console, desk_of, print_json, table
from retoma.words import speak


def create(
    database: str | None,
    as_json: bool,
    person: str,
    *,
    role: str,
    label: str,
    expires: str | None,
) -> None:
    made = ask(
        database,
        lambda app: desk_of(
            app,
            lambda access: access.create_key(
                person, role, label=label, expires=expires, actor=ACTOR
            ),
        ),
    )
    _show(made, as_json)


def list_(database: str | None, as_json: bool, *, every: bool) -> None:
    found = ask(database, lambda app: desk_of(app, lambda access: access.keys(every=every)))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("no keys"))
        return
    page = table(
        *(speak("id"), speak("person"), speak("role"), speak("label"), speak("state")),
        *(speak("created"), speak("last used"), speak("expires")),
    )
    for each in found:
        page.add_row(
            *(each.id, clean(each.person), each.role, clean(each.label), _state(each)),
            *(at(each.created_at), at(each.used_at), at(each.expires_at)),
        )
    console().print(page)


def revoke(database: str | None, as_json: bool, key: str) -> None:
    ask(database, lambda app: desk_of(app, lambda access: access.revoke_key(key, ACTOR)))
    if as_json:
        print_json({"id": key, "good": False})
    else:
        print(speak("key {key} opens nothing any more", key=clean(key)))


def rotate(database: str | None, as_json: bool, key: str, *, overlap: str) -> None:
    made = ask(
        database,
        lambda app: desk_of(app, lambda access: access.rotate_key(key, overlap, ACTOR)),
    )
    _show(made, as_json)


def _show(made: NewKey, as_json: bool) -> None:
    """The token alone on standard output: it goes into a file or another program, not a screen."""
    if as_json:
        print_json({"id": made.id, "token": made.token})
        return
    print(made.token)
    said = speak("key {key}: this is shown once and kept nowhere", key=made.id)
    print(said, file=sys.stderr)


def _state(key: KeySeen) -> str:
    if key.revoked_at is not None:
        return speak("revoked")
    if not key.good:
        return speak("expired")
    return speak("good") if key.replaced_by is None else speak("replaced")
