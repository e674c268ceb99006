"""What the stories of an application are made with."""

from dataclasses import dataclass

from retoma.library import Retoma
from retoma.outbound import Outbound
from retoma.vault import Vault


@dataclass(frozen=True, slots=True)
class Tools:
    """One for each process."""

    retoma: Retoma
    out: Outbound
    vault: Vault
