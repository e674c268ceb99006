"""What the stories and the routes of an application are made with."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from retoma.library import Retoma
from retoma.outbound import Outbound
from retoma.outbound.sdk import import_module
from retoma.secret import Secret
from retoma.settings import Settings
from retoma.vault import Vault

if TYPE_CHECKING:  # an extra
    from retoma.chromium import Painter

T = TypeVar("T")


class Tools:
    """One for each process. Opens nothing until it is used."""

    def __init__(
        self,
        retoma: Retoma,
        out: Outbound,
        *,
        settings: Settings | None = None,
        secret_key: Secret | None = None,
        key_file: Path | None = None,
    ) -> None:
        self.retoma = retoma
        self.out = out
        self.settings = settings or Settings()
        self._secret_key = secret_key
        self._key_file = key_file
        self._vault: Vault | None = None
        self._painter: Painter | None = None
        self._draws = self.settings.screenshots != "off"
        self._ones: dict[Callable[[Tools], object], object] = {}

    def one(self, make: "Callable[[Tools], T]") -> T:
        """What an application has once in a process, whoever of its parts asks first."""
        if make not in self._ones:
            self._ones[make] = make(self)
        return cast("T", self._ones[make])

    async def close(self) -> None:
        if self._painter is not None:
            await self._painter.close()
        await self.out.close()

    async def painter(self) -> "Painter | None":
        """Who draws pictures; None: nobody wants any, or `retoma[browser]` is not installed."""
        if self._draws and self._painter is None:
            await self._find_painter()
        return self._painter

    async def _find_painter(self) -> None:
        try:
            chromium = await import_module("retoma.chromium")
        except ImportError:
            self._draws = False
            return
        if self._painter is None:  # of two who asked at once, one
            self._painter = chromium.Painter(self.settings.chromium)

    async def vault(self) -> Vault:
        """The secrets of the database that is open."""
        if self._vault is None:
            database = await self.retoma.database()
            key, file = self._secret_key, self._key_file
            self._vault = Vault(database, self.retoma.ids, key=key, key_file=file)
        return self._vault
