"""Prices as shops in Brazil write them."""

from decimal import Decimal
from typing import Final

CENT: Final = Decimal("0.01")


def to_cents(value: Decimal | float) -> Decimal:
    return Decimal(value).quantize(CENT)


def reais(value: Decimal) -> str:
    """R$ 1.234,56"""
    sign = "-" if value < 0 else ""
    return f"{sign}R$ " + f"{abs(value):,.2f}".translate(str.maketrans(",.", ".,"))
