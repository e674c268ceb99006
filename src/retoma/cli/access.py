"""`retoma keys`, `people`, `secrets`: who may come in, and what they must not see.

What opens a door is printed alone on standard output: it goes into a file or another program, not on a screen.
"""

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated

import typer

from retoma.cli.noun import Noun, Rows
from retoma.console.exits import Exit, Stop
from retoma.console.kit import clean
from retoma.words import say, speak

if TYPE_CHECKING:
    from retoma.services.access import Invited, KeySeen, NewKey


def show_token(made: "NewKey", _: SimpleNamespace) -> None:
    print(made.token)
    said = speak("key {key}: this is shown once and kept nowhere", key=made.id)
    print(said, file=sys.stderr)


def state(key: "KeySeen") -> str:
    if key.revoked_at is not None:
        return speak("revoked")
    if not key.good:
        return speak("expired")
    return speak("good") if key.replaced_by is None else speak("replaced")


keys = Noun("access")
keys.verb(
    "create_key",
    "create",
    shows=show_token,
    takes={
        "label": "What it is for.",
        "expires": "How long it is good: 90d. Else until it is revoked.",
    },
)
keys.verb(
    "list_keys",
    "list",
    shows=Rows(
        (
            *(say("id"), say("person"), say("role"), say("label"), say("state")),
            *(say("created"), say("last used"), say("expires")),
        ),
        lambda each: (
            *(each.id, each.person, each.role, each.label, state(each)),
            *(each.created_at, each.used_at, each.expires_at),
        ),
        none=say("no keys"),
    ),
    takes={
        "every": Annotated[bool, typer.Option("--all", help="Those that were revoked too.")]
    },
)
keys.verb(
    "revoke_key",
    "revoke",
    shows=lambda _, given: speak("key {key} opens nothing any more", key=clean(given.key)),
    document=lambda _, given: {"id": given.key, "good": False},
)
keys.verb(
    "rotate_key",
    "rotate",
    shows=show_token,
    takes={"overlap": "How long the old one is good still."},
)


def show_link(made: "Invited", given: SimpleNamespace) -> None:
    print(made.link)
    said = speak(
        "signs {person} in once, within {expires}",
        person=clean(made.person),
        expires=clean(given.expires),
    )
    print(said, file=sys.stderr)


people = Noun("access")
people.verb(
    "list_people",
    "list",
    shows=Rows(
        (say("person"), say("role"), say("keys"), say("sessions"), say("created")),
        lambda each: (each.name, each.role, each.keys, each.sessions, each.created_at),
        none=say("nobody yet"),
    ),
)
people.verb(
    "invite_person", "invite", shows=show_link, takes={"expires": "How long the link is good."}
)
people.verb(
    "remove_person",
    "remove",
    shows=lambda _, given: speak(
        "{person}: every key and session is over, and no link is left",
        person=clean(given.person),
    ),
    document=lambda _, given: {"person": given.person, "removed": True},
)
people.verb(
    "list_sessions",
    "sessions",
    shows=Rows(
        (
            *(say("id"), say("person"), say("role"), say("since"), say("last seen")),
            *(say("expires"), say("browser")),
        ),
        lambda each: (
            *(each.id, each.person, each.role, each.created_at, each.seen_at),
            *(each.expires_at, each.agent),
        ),
        none=say("nobody is signed in"),
    ),
)
people.verb(
    "end_session",
    "sign-out",
    shows=lambda _, given: speak("session {session} is over", session=clean(given.session)),
    document=lambda _, given: {"session": given.session, "ended": True},
    takes={"session": Annotated[str, typer.Argument(metavar="SESSION")]},
)

secrets = Noun("access")
secrets.verb(
    "list_secrets",
    "list",
    shows=Rows(
        (
            *(say("of"), say("row"), say("lies"), say("in"), say("ends with")),
            *(say("since"), say("set by")),
        ),
        lambda each: (
            *(f"{each.slot.table}.{each.slot.column}", each.slot.row, each.source),
            *(each.where, each.last4, each.set_at, each.set_by),
        ),
        none=say("no secrets"),
    ),
    document=lambda found, _: [
        {
            **{name: getattr(each.slot, name) for name in ("table", "column", "row")},
            **{name: getattr(each, name) for name in each.__slots__ if name != "place"},
        }
        for each in found
    ],
)
secrets.verb(
    "rotate_secrets",
    "rotate",
    shows=lambda done, _: speak(
        "{n} secrets are sealed with key {key} now", n=done.sealed, key=done.key
    ),
    document=lambda done, _: {
        "key": done.key,
        "sealed": done.sealed,
        "unreadable": [str(each) for each in done.unreadable],
    },
    refuses=lambda done: (
        Stop(
            Exit.FAILED,
            say(
                "{n} secrets do not open and keep their old key; set them anew: {places}",
                n=len(done.unreadable),
                places=", ".join(map(str, done.unreadable[:10])),
            ),
        )
        if done.unreadable
        else None
    ),
)
