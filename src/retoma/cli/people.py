"""`retoma people`: who may come in, and who is signed in."""

import sys

from retoma import settings
from retoma.console.kit import ACTOR, ask, at, clean, console, desk_of, print_json, table
from retoma.words import speak


def list_(database: str | None, as_json: bool) -> None:
    found = ask(database, lambda app: desk_of(app, lambda access: access.people()))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("nobody yet"))
        return
    page = table(
        *(speak("person"), speak("role"), speak("keys"), speak("sessions"), speak("created"))
    )
    for each in found:
        counts = (str(each.keys), str(each.sessions))
        page.add_row(clean(each.name), each.role, *counts, at(each.created_at))
    console().print(page)


def invite(
    database: str | None, as_json: bool, person: str, *, role: str, expires: str
) -> None:
    token = ask(
        database,
        lambda app: desk_of(
            app, lambda access: access.invite(person, role, ACTOR, expires=expires)
        ),
    )
    link = f"{_origin(database)}/enter/{token}"
    if as_json:
        print_json({"person": person, "role": role, "link": link})
        return
    print(link)
    said = speak(
        "signs {person} in once, within {expires}", person=clean(person), expires=clean(expires)
    )
    print(said, file=sys.stderr)


def remove(database: str | None, as_json: bool, person: str) -> None:
    ask(database, lambda app: desk_of(app, lambda access: access.remove_person(person, ACTOR)))
    if as_json:
        print_json({"person": person, "removed": True})
    else:
        print(
            speak(
                "{person}: every key and session is over, and no link is left",
                person=clean(person),
            )
        )


def sessions(database: str | None, as_json: bool) -> None:
    found = ask(database, lambda app: desk_of(app, lambda access: access.sessions()))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("nobody is signed in"))
        return
    page = table(
        *(speak("id"), speak("person"), speak("role"), speak("since"), speak("last seen")),
        *(speak("expires"), speak("browser")),
    )
    for each in found:
        page.add_row(
            *(each.id, clean(each.person), each.role, at(each.created_at), at(each.seen_at)),
            *(at(each.expires_at), clean(each.agent)),
        )
    console().print(page)


def sign_out(database: str | None, as_json: bool, session: str) -> None:
    ask(database, lambda app: desk_of(app, lambda access: access.end_session(session, ACTOR)))
    if as_json:
        print_json({"session": session, "ended": True})
    else:
        print(speak("session {session} is over", session=clean(session)))


def _origin(database: str | None) -> str:
    """Where `retoma serve` listens, as far as the settings here say."""
    chosen = settings.read(database_url=database)
    here = f"http://{chosen.serve_host}:{chosen.serve_port}"
    return (chosen.public_url or here).rstrip("/")
