"""The vault: stores secrets that belong to rows of any table, and decrypts them only for the code that uses them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from retoma.codec import encode
from retoma.db import Database, Transaction, crashpoint
from retoma.engine.ports import Ids
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.store import tell
from retoma.secret import Secret
from retoma.vault import store
from retoma.vault.keys import EnvKeys, KeyFile, Keys, KeySource, default_file
from retoma.vault.ref import SecretRef, Source, Unreadable
from retoma.vault.seal import NONCE, SecretSlot, Stamp, open_sealed, seal
from retoma.vault.sign import Signer
from retoma.vault.store import MaskedSecret, Sealed, SecretSeen
from retoma.words import say

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rotated:
    """The result of a rotation: the new key, how many secrets it encrypted, which could not be decrypted."""

    key: str
    sealed: int
    unreadable: tuple[SecretSlot, ...]


@dataclass(frozen=True, slots=True)
class Sealer:
    """Stores secrets within the caller's transaction."""

    _keys: Keys
    _database: str
    _ids: Ids

    def put(
        self, tx: Transaction, slot: SecretSlot, value: Secret | SecretRef, *, actor: str
    ) -> None:
        if isinstance(value, SecretRef):
            store.put(tx, slot, value, key=None, last4=None, actor=actor)
            return
        key = self._current_key(tx)
        stamp = Stamp(self._database, key, self._ids.unguessable(NONCE))
        ref = seal(self._keys, stamp, slot, value)
        shown = store.last4(value.reveal())
        store.put(tx, slot, ref, key=key, last4=shown, actor=actor)

    def remove(self, tx: Transaction, slot: SecretSlot, *, actor: str) -> None:
        """Remove the secret of a field, if it has one."""
        if store.find(tx, slot) is not None:
            store.remove(tx, slot, actor=actor)

    def _current_key(self, tx: Transaction) -> str:
        """Return the key that the database names: a key that was rotated away could not decrypt later."""
        key = store.lock_or_set_key(tx, first=self._keys.current)
        if key not in self._keys:
            raise IllegalMove(_unknown_key(key, self._keys.current))
        return key


class Vault:
    """Secrets by the field they belong to. Loads its keys on first use."""

    def __init__(
        self,
        database: Database,
        ids: Ids,
        *,
        key: Secret | None = None,
        key_file: Path | None = None,
    ) -> None:
        """`key`: one or more keys, of which the first encrypts; by default they are in `key_file`, else
        beside the database or in this user's data folder."""
        self._database = database
        self._ids = ids
        self._key_file = key_file
        self._source: KeySource | None = None if key is None else EnvKeys(key)
        self._keys: Keys | None = None
        self._id: str | None = None

    async def masked(self, slot: SecretSlot) -> MaskedSecret:
        return (await self.masked_many(slot.table, slot.column, [slot.row]))[slot.row]

    async def masked_many(
        self, table: str, column: str, rows: Sequence[str]
    ) -> dict[str, MaskedSecret]:
        """Return what may be shown of the secrets of many rows."""
        return await self._database.read(
            lambda tx: store.masked_secrets(tx, table, column, rows)
        )

    async def page(self, after: SecretSlot | None = None) -> list[SecretSeen]:
        """Return one page of secrets, in the order of their fields."""
        return await self._database.read(lambda tx: store.page(tx, after))

    async def put(self, slot: SecretSlot, value: Secret | SecretRef, *, actor: str) -> None:
        """Set or replace the secret of a field."""
        sealer = await self.sealer()
        await self._database.write(
            lambda tx: sealer.put(tx, slot, value, actor=actor), verb="put_secret"
        )

    async def remove(self, slot: SecretSlot, *, actor: str) -> None:
        await self._database.write(
            lambda tx: store.remove(tx, slot, actor=actor), verb="remove_secret"
        )

    async def sealer(self) -> Sealer:
        """Make a sealer, to store a secret in the transaction of its row. Use it at once."""
        keys, id_ = await self._load_or_make_keys()
        return Sealer(keys, id_, self._ids)

    async def signer(self, purpose: str) -> Signer:
        """Make a signer for documents that leave the system."""
        keys, _ = await self._load_or_make_keys()
        return Signer(keys, purpose)

    async def _load_or_make_keys(self) -> tuple[Keys, str]:
        """Load the keys; make the first one if there are none."""
        source, id_ = await self._open_source()
        keys = source.load()
        if keys is None:
            await self._check_no_other_key()
            keys = source.make(self._ids)
        self._keys = keys
        return keys, id_

    async def get(self, slot: SecretSlot) -> Secret | None:
        """Decrypt the secret of a field; None if it has none. Raises Unreadable if it cannot be decrypted."""
        return (await self.get_with(slot, lambda _: None))[1]

    async def get_with(
        self, slot: SecretSlot, read: Callable[[Transaction], T]
    ) -> tuple[T, Secret | None]:
        """Call `read` and get the secret in one transaction."""
        result, ref = await self._database.read(lambda tx: (read(tx), store.find(tx, slot)))
        if ref is None:
            return result, None
        if ref.source is not Source.SEALED:
            return result, ref.read()
        return result, await self._open(slot, ref)

    async def _open(self, slot: SecretSlot, ref: SecretRef) -> Secret:
        source, id_ = await self._open_source()
        if self._keys is not None:
            try:
                return open_sealed(self._keys, id_, slot, ref)
            except Unreadable:
                pass  # a key may have been rotated since these were loaded
        self._keys = source.load()
        if self._keys is None:
            raise Unreadable(
                say("the secret of {slot} is encrypted, but there is no key here", slot=slot)
            )
        return open_sealed(self._keys, id_, slot, ref)

    async def rotate(self, *, actor: str) -> Rotated:
        """Encrypt every secret with a new key, then drop the old keys. If a rotation is interrupted,
        the next one completes it; until then the old keys stay valid."""
        source, id_ = await self._open_source()
        keys = await self._database.write(
            lambda tx: self._rotate_key(tx, source), verb="turn_key"
        )
        crashpoint("rotate.key_turned")
        sealed, unreadable = await self._reseal_all(keys, id_)
        crashpoint("rotate.sealed")
        done = Rotated(keys.current, sealed, tuple(unreadable))
        await self._database.write(
            lambda tx: self._drop_old_keys(tx, source, done, actor), verb="drop_keys"
        )
        self._keys = source.load()
        return done

    def _rotate_key(self, tx: Transaction, source: KeySource) -> Keys:
        """Make the new current key. If a rotation is under way, return its key and make no other."""
        keys = source.load()
        if keys is None:
            if (held := store.lock_key(tx)) is not None:
                raise Unreadable(_unknown_key(held, None))
            keys = source.make(self._ids)
        held = store.lock_or_set_key(tx, first=keys.current)
        if held not in keys:
            raise Unreadable(_unknown_key(held, keys.current))
        under_way = len(keys) > 1 and store.any_sealed_otherwise(tx, keys.current)
        if keys.current == held and not under_way:
            keys = source.rotate(self._ids)
        crashpoint("rotate.key_made")
        store.set_key(tx, keys.current)
        return keys

    async def _reseal_all(self, keys: Keys, id_: str) -> tuple[int, list[SecretSlot]]:
        sealed, unreadable, after = 0, list[SecretSlot](), None
        while True:
            moved, stuck, last = await self._database.write(
                lambda tx, after=after: self._reseal_slice(tx, keys, id_, after),  # type: ignore[misc]
                verb="seal_anew",
            )
            sealed, unreadable, after = sealed + moved, unreadable + stuck, last
            if last is None:
                return sealed, unreadable

    def _reseal_slice(
        self, tx: Transaction, keys: Keys, id_: str, after: SecretSlot | None
    ) -> tuple[int, list[SecretSlot], SecretSlot | None]:
        anew: list[tuple[Sealed, SecretRef]] = []
        stuck: list[SecretSlot] = []
        old = store.sealed_otherwise(tx, keys.current, after)
        for sealed in old:
            try:
                secret = open_sealed(keys, id_, sealed.slot, sealed.ref)
            except Unreadable:
                stuck.append(sealed.slot)
            else:
                stamp = Stamp(id_, keys.current, self._ids.unguessable(NONCE))
                anew.append((sealed, seal(keys, stamp, sealed.slot, secret)))
        moved = store.seal_anew(tx, keys.current, anew) if anew else 0
        return moved, stuck, old[-1].slot if old else None

    def _drop_old_keys(
        self, tx: Transaction, source: KeySource, done: Rotated, actor: str
    ) -> None:
        """Drop the old keys unless a secret still needs them: an operator may still decrypt it by hand."""
        same = store.lock_key(tx) == done.key
        if same and not store.any_sealed_otherwise(tx, done.key):
            source.drop(done.key, self._ids)
        details = encode({"sealed": done.sealed, "unreadable": len(done.unreadable)})
        tell(
            tx, actor=actor, verb="secrets.rotated", subject=f"key {done.key}", details=details
        )

    async def _open_source(self) -> tuple[KeySource, str]:
        if self._id is None:
            self._id = await self._database.read(store.database_id)
        if self._source is None:
            file = self._key_file or default_file(self._database.url, self._id)
            self._source = KeyFile(file)
        return self._source, self._id

    async def _check_no_other_key(self) -> None:
        """Raise Unreadable if another machine has made a key: this one must not make a second key."""
        held = await self._database.read(store.secret_key)
        if held is not None:
            raise Unreadable(_unknown_key(held, None))


def _unknown_key(held: str | None, ours: str | None) -> str:
    if ours is None:
        return say(
            "the secrets are encrypted with key {held}, but there is no key file here: copy it from the"
            " machine that has it, or set RETOMA_SECRET_KEY",
            held=held,
        )
    return say(
        "the secrets are encrypted with key {held}, but this process has key {ours}: give it the same"
        " key, or try again if the key was just rotated; nothing was changed",
        held=held,
        ours=ours,
    )
