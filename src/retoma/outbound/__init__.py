"""Outbound HTTP requests: address checks against SSRF, size caps, and logs without secrets.

shop = Policy(purpose="prices", hosts={"api.example.org"})
answer = await out.get(shop, "https://api.example.org/v1/price", params={"q": "lamp"})
"""

from retoma.engine.rules.errors import Throttled
from retoma.outbound.answer import Answer
from retoma.outbound.client import Outbound
from retoma.outbound.failure_types import FailureType
from retoma.outbound.policy import Blocked, Policy, Proxy
from retoma.outbound.resolver import Resolver

__all__ = [
    "Answer",
    "Blocked",
    "FailureType",
    "Outbound",
    "Policy",
    "Proxy",
    "Resolver",
    "Throttled",
]
