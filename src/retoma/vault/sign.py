"""Sign with keys derived from the encryption keys, one per purpose."""

import hmac
from dataclasses import dataclass
from hashlib import sha256

from retoma.engine.rules.errors import BadInput
from retoma.vault.keys import Keys, KeySource
from retoma.vault.ref import Unreadable
from retoma.words import say


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs for one purpose; a signature is not valid for another purpose."""

    _keys: Keys
    _purpose: str

    @property
    def key(self) -> str:
        """The id of the key that signs."""
        return self._keys.current

    def sign(self, text: bytes) -> str:
        return self._signature(self._keys.current, text)

    def is_signed(self, key: str, text: bytes, signature: str) -> bool:
        """Whether the text was signed with the key `key`."""
        if key not in self._keys:
            raise BadInput(
                say(
                    "it is signed with key {key}, but this process has key {ours}: copy that key here",
                    key=key,
                    ours=self._keys.current,
                )
            )
        return hmac.compare_digest(self._signature(key, text).encode(), signature.encode())

    def _signature(self, key: str, text: bytes) -> str:
        own = hmac.new(self._keys.key(key), b"retoma sign\0" + self._purpose.encode(), sha256)
        return hmac.new(own.digest(), text, sha256).hexdigest()


def signer_with(source: KeySource, purpose: str) -> Signer:
    """Make a signer for verification. Makes no key."""
    keys = source.load()
    if keys is None:
        raise Unreadable(say("there is no secret key here, so nothing can be verified"))
    return Signer(keys, purpose)
