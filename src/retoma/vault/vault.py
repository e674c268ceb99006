"""The vault: secrets of whatever table, put in by people, taken out only by who uses them."""

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
from retoma.vault.seal import NONCE, Place, Stamp, opened, seal
from retoma.vault.sign import Signer
from retoma.vault.store import Face, Sealed, SecretSeen
from retoma.words import say

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation did: the key that seals now, how many it sealed, what did not open."""

    key: str
    sealed: int
    unreadable: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Sealer:
    """Puts secrets in inside a transaction of somebody else's."""

    _keys: Keys
    _database: str
    _ids: Ids

    def put(
        self, tx: Transaction, place: Place, value: Secret | SecretRef, *, actor: str
    ) -> None:
        if isinstance(value, SecretRef):
            store.put(tx, place, value, key=None, last4=None, actor=actor)
            return
        key = self._key_that_seals(tx)
        stamp = Stamp(self._database, key, self._ids.unguessable(NONCE))
        ref = seal(self._keys, stamp, place, value)
        shown = store.last4(value.reveal())
        store.put(tx, place, ref, key=key, last4=shown, actor=actor)

    def remove(self, tx: Transaction, place: Place, *, actor: str) -> None:
        """A place has no secret from now on, whether it had one or not."""
        if store.find(tx, place) is not None:
            store.remove(tx, place, actor=actor)

    def _key_that_seals(self, tx: Transaction) -> str:
        """Whichever the database says: with one that was turned away, nothing would ever open."""
        key = store.hold_key(tx, first=self._keys.current)
        if key not in self._keys:
            raise IllegalMove(_strange(key, self._keys.current))
        return key


class Vault:
    """Secrets by their place. Opens its keys when it first needs one."""

    def __init__(
        self,
        database: Database,
        ids: Ids,
        *,
        key: Secret | None = None,
        key_file: Path | None = None,
    ) -> None:
        """`key`: RETOMA_SECRET_KEY, or several, the first of which seals; else they lie in
        `key_file`, else beside the database or in this user's data folder."""
        self._database = database
        self._ids = ids
        self._key_file = key_file
        self._source: KeySource | None = None if key is None else EnvKeys(key)
        self._keys: Keys | None = None
        self._id: str | None = None

    # — what may be shown —

    async def face(self, place: Place) -> Face:
        return (await self.faces(place.table, place.column, [place.row]))[place.row]

    async def faces(self, table: str, column: str, rows: Sequence[str]) -> dict[str, Face]:
        """Of many rows at once."""
        return await self._database.read(lambda tx: store.faces(tx, table, column, rows))

    async def page(self, after: Place | None = None) -> list[SecretSeen]:
        """A page, in the order of their places."""
        return await self._database.read(lambda tx: store.page(tx, after))

    # — in —

    async def put(self, place: Place, value: Secret | SecretRef, *, actor: str) -> None:
        """A place has this secret from now on, and no other."""
        sealer = await self.sealer()
        await self._database.write(
            lambda tx: sealer.put(tx, place, value, actor=actor), verb="put_secret"
        )

    async def remove(self, place: Place, *, actor: str) -> None:
        await self._database.write(
            lambda tx: store.remove(tx, place, actor=actor), verb="remove_secret"
        )

    async def sealer(self) -> Sealer:
        """For whoever puts a secret in together with the row it belongs to. Use it at once."""
        keys, id_ = await self._keys_to_use()
        return Sealer(keys, id_, self._ids)

    async def signer(self, purpose: str) -> Signer:
        """For whoever signs something that leaves the house."""
        keys, _ = await self._keys_to_use()
        return Signer(keys, purpose)

    async def _keys_to_use(self) -> tuple[Keys, str]:
        """Those there are, or the first one."""
        source, id_ = await self._at_home()
        keys = source.load()
        if keys is None:
            await self._refuse_strange_keys()
            keys = source.make(self._ids)
        self._keys = keys
        return keys, id_

    # — out —

    async def get(self, place: Place) -> Secret | None:
        """The secret itself; None where there is none. Unreadable where it does not open."""
        return (await self.beside(place, lambda _: None))[1]

    async def beside(
        self, place: Place, look: Callable[[Transaction], T]
    ) -> tuple[T, Secret | None]:
        """What `look` reads, and the secret that belongs to it, at one instant."""
        seen, ref = await self._database.read(lambda tx: (look(tx), store.find(tx, place)))
        if ref is None:
            return seen, None
        if ref.source is not Source.SEALED:
            return seen, ref.read()
        return seen, await self._opened(place, ref)

    async def _opened(self, place: Place, ref: SecretRef) -> Secret:
        source, id_ = await self._at_home()
        if self._keys is not None:
            try:
                return opened(self._keys, id_, place, ref)
            except Unreadable:
                pass  # perhaps a key was turned since these were read
        self._keys = source.load()
        if self._keys is None:
            raise Unreadable(
                say("the secret of {place} is sealed, and there is no key here", place=place)
            )
        return opened(self._keys, id_, place, ref)

    # — turning keys —

    async def rotate(self, *, actor: str) -> Rotated:
        """Seal everything with a new key, then forget the old ones. Killed in the middle, the
        next one goes on; until then both open."""
        source, id_ = await self._at_home()
        keys = await self._database.write(lambda tx: self._turn(tx, source), verb="turn_key")
        crashpoint("rotate.key_turned")
        sealed, unreadable = await self._seal_all(keys, id_)
        crashpoint("rotate.sealed")
        done = Rotated(keys.current, sealed, tuple(unreadable))
        await self._database.write(
            lambda tx: self._forget_old(tx, source, done, actor), verb="drop_keys"
        )
        self._keys = source.load()
        return done

    def _turn(self, tx: Transaction, source: KeySource) -> Keys:
        """The key to seal with. Asked again it turns no further: what was begun goes on."""
        keys = source.load()
        if keys is None:
            if (held := store.held_key(tx)) is not None:
                raise Unreadable(_strange(held, None))
            keys = source.make(self._ids)
        held = store.hold_key(tx, first=keys.current)
        if held not in keys:
            raise Unreadable(_strange(held, keys.current))
        under_way = len(keys) > 1 and store.any_sealed_otherwise(tx, keys.current)
        if keys.current == held and not under_way:
            keys = source.turn(self._ids)
        crashpoint("rotate.key_made")
        store.turn_key(tx, keys.current)
        return keys

    async def _seal_all(self, keys: Keys, id_: str) -> tuple[int, list[Place]]:
        sealed, unreadable, after = 0, list[Place](), None
        while True:
            moved, stuck, last = await self._database.write(
                lambda tx, after=after: self._bite(tx, keys, id_, after),  # type: ignore[misc]
                verb="seal_anew",
            )
            sealed, unreadable, after = sealed + moved, unreadable + stuck, last
            if last is None:
                return sealed, unreadable

    def _bite(
        self, tx: Transaction, keys: Keys, id_: str, after: Place | None
    ) -> tuple[int, list[Place], Place | None]:
        anew: list[tuple[Sealed, SecretRef]] = []
        stuck: list[Place] = []
        found = store.sealed_otherwise(tx, keys.current, after)
        for each in found:
            try:
                secret = opened(keys, id_, each.place, each.ref)
            except Unreadable:
                stuck.append(each.place)
            else:
                stamp = Stamp(id_, keys.current, self._ids.unguessable(NONCE))
                anew.append((each, seal(keys, stamp, each.place, secret)))
        moved = store.seal_anew(tx, keys.current, anew) if anew else 0
        return moved, stuck, found[-1].place if found else None

    def _forget_old(
        self, tx: Transaction, source: KeySource, done: Rotated, actor: str
    ) -> None:
        """Only where nothing needs them: what does not open may be opened by hand yet."""
        same = store.held_key(tx) == done.key
        if same and not store.any_sealed_otherwise(tx, done.key):
            source.drop(done.key, self._ids)
        details = encode({"sealed": done.sealed, "unreadable": len(done.unreadable)})
        tell(
            tx, actor=actor, verb="secrets.rotated", subject=f"key {done.key}", details=details
        )

    # — where it is —

    async def _at_home(self) -> tuple[KeySource, str]:
        if self._id is None:
            self._id = await self._database.read(store.database_id)
        if self._source is None:
            file = self._key_file or default_file(self._database.url, self._id)
            self._source = KeyFile(file)
        return self._source, self._id

    async def _refuse_strange_keys(self) -> None:
        """A second machine must not make a key of its own for what another one has sealed."""
        held = await self._database.read(store.secret_key)
        if held is not None:
            raise Unreadable(_strange(held, None))


def _strange(held: str | None, ours: str | None) -> str:
    if ours is None:
        return say(
            "secrets here are sealed with key {held}, and there is no key file: copy it from the"
            " machine that has it, or set RETOMA_SECRET_KEY",
            held=held,
        )
    return say(
        "secrets here are sealed with key {held}, and this process has {ours}: bring it the same"
        " key, or ask again if one was just turned; nothing was changed",
        held=held,
        ours=ours,
    )
