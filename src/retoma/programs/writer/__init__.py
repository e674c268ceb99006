"""The writer: takes a JSON document at an address, stores its items in a table by a registered profile.

A request is one job on the writer's own database; how far it is stands in the target, written in
the same transaction as the rows. Killed anywhere it goes on, and counts nothing twice.
"""

from retoma.programs.writer.desk import Caps, Desk, Wanted
from retoma.programs.writer.model import Profile

__all__ = ["Caps", "Desk", "Profile", "Wanted"]
