"""Log what goes wrong in a part of the loop, and go on: it is tried again later."""

from retoma.db import DatabaseError, Full
from retoma.engine.log import get_logger
from retoma.engine.writing.database_health import Trouble

log = get_logger("retoma.runner")


class Tolerated:
    """A block whose errors do not end the runner. `at`: the part of the loop, for the log."""

    __slots__ = ("_at", "_instance", "_trouble")

    def __init__(self, instance: str, trouble: Trouble, at: str) -> None:
        self._instance = instance
        self._trouble = trouble
        self._at = at

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        match error:
            case None:
                self._trouble.over(self._at)
            case Full():
                self._trouble.met(self._at, error)
            case DatabaseError():
                log.warning(
                    "runner.trouble", at=self._at, runner=self._instance, error=str(error)
                )
            case Exception():
                log.error("runner.trouble", at=self._at, runner=self._instance, exc_info=error)
            case _:
                return False
        return True
