"""Who may come in: people, their keys and browsers; and where secrets lie."""

from collections.abc import Sequence
from dataclasses import dataclass

from retoma.access import Access, KeySeen, NewKey, PersonSeen, SessionSeen
from retoma.settings import Settings
from retoma.vault import Rotated, SecretSeen, SecretSlot, Vault

__all__ = ["Invited", "KeySeen", "NewKey", "PersonSeen", "SessionSeen"]


@dataclass(frozen=True, slots=True)
class Invited:
    """A link that signs its reader in, once."""

    person: str
    role: str
    link: str


async def create_key(
    access: Access,
    person: str,
    role: str = "viewer",
    label: str = "",
    expires: str | None = None,
    *,
    actor: str,
) -> NewKey:
    """A key for a person, who is written down if new. Its token is shown this once."""
    return await access.create_key(person, role, label=label, expires=expires, actor=actor)


async def list_keys(access: Access, *, every: bool = False) -> Sequence[KeySeen]:
    """Keys, newest first: whose, what they allow, when they were last used."""
    return await access.keys(every=every)


async def revoke_key(access: Access, key: str, *, actor: str) -> KeySeen:
    """It opens nothing from now on."""
    await access.revoke_key(key, actor)
    return await access.key(key)


async def rotate_key(access: Access, key: str, overlap: str = "24h", *, actor: str) -> NewKey:
    """A new key with the rights of an old one, which ends with the overlap."""
    return await access.rotate_key(key, overlap, actor)


# — people and their browsers —


async def list_people(access: Access) -> Sequence[PersonSeen]:
    """Everybody who may come in, by name."""
    return await access.people()


async def invite_person(
    access: Access,
    chosen: Settings,
    person: str,
    role: str = "viewer",
    expires: str = "1h",
    *,
    actor: str,
) -> Invited:
    """A link that signs somebody in, once. Whoever is called so has this role from now on."""
    token = await access.invite(person, role, actor, expires=expires)
    here = f"http://{chosen.serve_host}:{chosen.serve_port}"
    return Invited(person, role, f"{(chosen.public_url or here).rstrip('/')}/enter/{token}")


async def remove_person(access: Access, person: str, *, actor: str) -> None:
    """Every key, link and session of theirs is over, at once."""
    await access.remove_person(person, actor)


async def list_sessions(access: Access) -> Sequence[SessionSeen]:
    """Who is signed in with a browser, and since when."""
    return await access.sessions()


async def end_session(access: Access, session: str, *, actor: str) -> None:
    """A session is over, at once."""
    await access.end_session(session, actor)


# — secrets —


async def list_secrets(vault: Vault) -> list[SecretSeen]:
    """Which rows have a secret, where it lies, and who set it."""
    found: list[SecretSeen] = []
    after: SecretSlot | None = None
    while page := await vault.page(after):
        found += page
        after = page[-1].slot
    return found


async def rotate_secrets(vault: Vault, *, actor: str) -> Rotated:
    """Seal every secret with a new key, then forget the old one. Interrupted, it goes on."""
    return await vault.rotate(actor=actor)
