"""What the stories and the routes of an application are made with."""

from pathlib import Path

from retoma.library import Retoma
from retoma.outbound import Outbound
from retoma.secret import Secret
from retoma.vault import Vault


class Tools:
    """One for each process. Opens nothing until it is used."""

    def __init__(
        self,
        retoma: Retoma,
        out: Outbound,
        *,
        secret_key: Secret | None = None,
        key_file: Path | None = None,
    ) -> None:
        self.retoma = retoma
        self.out = out
        self._secret_key = secret_key
        self._key_file = key_file
        self._vault: Vault | None = None

    async def close(self) -> None:
        await self.out.close()

    async def vault(self) -> Vault:
        """The secrets of the database that is open."""
        if self._vault is None:
            database = await self.retoma.database()
            key, file = self._secret_key, self._key_file
            self._vault = Vault(database, self.retoma.ids, key=key, key_file=file)
        return self._vault
