"""The database does not do what it is asked: logged once when it begins and once when it is over."""

from collections.abc import Callable

from retoma.db import DatabaseError, Full
from retoma.engine.log import get_logger

log = get_logger("retoma.runner")


class Trouble:
    """What keeps one boot of a runner from writing, and where it met it."""

    def __init__(self, boot: str, tell: Callable[[str | None], None]) -> None:
        self._boot = boot
        self._tell = tell
        self._met: dict[str, str] = {}

    def met(self, at: str, error: DatabaseError) -> None:
        first = not self._met
        self._met[at] = str(error)
        if first:
            name = "runner.no_room" if isinstance(error, Full) else "runner.in_trouble"
            log.error(name, at=at, runner=self._boot, error=str(error))
            self._tell(str(error))

    def over(self, at: str) -> None:
        """This one came through; the trouble is over when all have."""
        if self._met.pop(at, None) is not None and not self._met:
            log.info("runner.room_again", at=at, runner=self._boot)
            self._tell(None)

    def at(self, where: str) -> bool:
        return where in self._met
