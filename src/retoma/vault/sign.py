"""Signing with the keys that seal: for one purpose at a time, and never with a key itself."""

import hmac
from dataclasses import dataclass
from hashlib import sha256

from retoma.engine.rules.errors import BadInput
from retoma.vault.keys import Keys, KeySource
from retoma.vault.ref import Unreadable
from retoma.words import say


@dataclass(frozen=True, slots=True)
class Signer:
    """What was signed for one purpose says nothing for another."""

    _keys: Keys
    _purpose: str

    @property
    def key(self) -> str:
        """The id of the key that signs."""
        return self._keys.current

    def sign(self, text: bytes) -> str:
        return self._signature(self._keys.current, text)

    def signed(self, key: str, text: bytes, signature: str) -> bool:
        """Whether whoever has the key `key` signed this text."""
        if key not in self._keys:
            raise BadInput(
                say(
                    "it is signed with key {key}, and this process has {ours}: bring it that key",
                    key=key,
                    ours=self._keys.current,
                )
            )
        return hmac.compare_digest(self._signature(key, text).encode(), signature.encode())

    def _signature(self, key: str, text: bytes) -> str:
        own = hmac.new(self._keys.key(key), b"retoma sign\0" + self._purpose.encode(), sha256)
        return hmac.new(own.digest(), text, sha256).hexdigest()


def signer_with(source: KeySource, purpose: str) -> Signer:
    """For whoever only asks whether something was signed: makes no key."""
    keys = source.load()
    if keys is None:
        raise Unreadable(
            say("there is no secret key here, and nothing can be verified without")
        )
    return Signer(keys, purpose)
