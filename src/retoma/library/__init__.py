"""The library: what a user of retoma holds. `Retoma` registers, submits, runs and asks; what it knows of
batches, dead letters, schedules and the like stands in a small class of each, such as `app.batches`."""

from retoma.library.app import Retoma, room_of
from retoma.library.free_space import LEAST_FREE, can_write

__all__ = ["LEAST_FREE", "Retoma", "can_write", "room_of"]
