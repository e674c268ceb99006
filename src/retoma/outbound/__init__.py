"""The only way out of the house: guarded, capped, and silent about what it carries.

shop = Policy(purpose="prices", hosts={"api.example.org"})
answer = await out.get(shop, "https://api.example.org/v1/price", params={"q": "lamp"})
"""

from retoma.engine.rules.errors import Throttled
from retoma.outbound.answer import Answer
from retoma.outbound.client import Outbound
from retoma.outbound.policy import Blocked, Policy, Proxy
from retoma.outbound.resolver import Resolver
from retoma.outbound.sorting import Sort

__all__ = ["Answer", "Blocked", "Outbound", "Policy", "Proxy", "Resolver", "Sort", "Throttled"]
