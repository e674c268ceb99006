"""Profiles in the service's own database."""

import json
from typing import Final

from retoma.codec import decode, encode
from retoma.db import Transaction
from retoma.db.migrations import Room
from retoma.db.statements import Statements
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.engine.store import tell
from retoma.programs.writer.model import Profile
from retoma.words import say

ROOM: Final = Room("writer", "retoma.programs.writer.migrations")


SQL: Final = Statements("retoma.programs.writer.sql")


def list_profiles(tx: Transaction) -> list[Profile]:
    """All of them, by name: they are few."""
    return [decode(document, Profile) for (document,) in tx.all(SQL.list_profiles)]


def put_profile(tx: Transaction, profile: Profile, *, actor: str) -> None:
    """A profile has this meaning from now on; no two may mean the same request."""
    asked = (profile.table, profile.schema, profile.conflict_key, profile.json_path)
    for other in list_profiles(tx):
        same = (other.table, other.schema, other.conflict_key, other.json_path) == asked
        if same and other.name != profile.name:
            raise BadInput(
                say("profile {name} stands for the same request already", name=other.name)
            )
    tx.run(
        SQL.put_profile,
        name=profile.name,
        asked=json.dumps(asked),
        document=encode(profile),
        actor=actor,
    )
    tell(tx, actor=actor, verb="writer.profile_put", subject=f"profile {profile.name}")


def remove_profile(tx: Transaction, name: str, *, actor: str) -> None:
    if not tx.run(SQL.remove_profile, name=name):
        raise NotFound(say("there is no profile {name!r}", name=name))
    tell(tx, actor=actor, verb="writer.profile_removed", subject=f"profile {name}")
