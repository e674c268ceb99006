"""The tables of FIPE: brands, their models, the years of a model, and what it is worth."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from retoma.apps.quotes.model import NotAPrice, Vehicle, VehicleKind, read_price
from retoma.engine.rules.errors import Permanent, Transient
from retoma.outbound import Outbound, Policy
from retoma.text import normalize
from retoma.words import say

TABLES: Final = {
    VehicleKind.CAR: "/fipe/api/v1/carros",
    VehicleKind.MOTORCYCLE: "/fipe/api/v1/motos",
    VehicleKind.TRUCK: "/fipe/api/v1/caminhoes",
}
BRANDS: Final = "/marcas"
DEADLINE: Final = 20.0
LARGEST: Final = 2 << 20  # bytes; the longest of its lists has a tenth of that
AT_ONCE: Final = 1_000  # calls: how many there are is for slots and rates to say


@dataclass(frozen=True, slots=True)
class Fipe:
    """The table, at one address."""

    out: Outbound
    base: str

    async def worth(self, vehicle: Vehicle) -> dict[str, Any]:
        """What it is worth; Permanent no_vehicle where the table does not know it."""
        brand = _best(await self._list(vehicle.kind, BRANDS), vehicle.brand)
        listed = await self._ask(vehicle.kind, f"/marcas/{brand}/modelos")
        model = _best(
            _named(listed.get("modelos") if isinstance(listed, dict) else None), vehicle.model
        )
        years = await self._list(vehicle.kind, f"/marcas/{brand}/modelos/{model}/anos")
        year = _of_year(years, vehicle)
        told = await self._ask(vehicle.kind, f"/marcas/{brand}/modelos/{model}/anos/{year}")
        if not isinstance(told, dict):
            raise Transient(
                say("{where}: the answer is no object", where="fipe"), code="bad_answer"
            )
        try:
            value = read_price(told.get("Valor"))
        except NotAPrice as error:
            raise Permanent(f"fipe: {error}", code="no_vehicle") from error
        kept = ("Marca", "Modelo", "AnoModelo", "Combustivel", "CodigoFipe", "MesReferencia")
        return {"price": str(value), **{name: told.get(name) for name in kept}}

    async def _list(self, kind: VehicleKind, path: str) -> Mapping[str, str]:
        return _named(await self._ask(kind, path))

    async def _ask(self, kind: VehicleKind, path: str) -> Any:
        policy = _policy(self.base)
        url = self.base.rstrip("/") + TABLES[kind] + path
        answer = await self.out.get(policy, url, accept=(404,))
        if answer.status == 404:
            code = "wrong_address" if path == BRANDS else "no_vehicle"
            raise Permanent(f"FIPE: 404 {TABLES[kind]}{path}", code=code)
        return await answer.json()


@lru_cache(maxsize=4)
def _policy(base: str) -> Policy:
    return Policy.toward(
        "quotes fipe",
        base,
        deadline=DEADLINE,
        most_bytes=LARGEST,
        most_unpacked=LARGEST,
        connections=AT_ONCE,
    )


def _named(told: Any) -> Mapping[str, str]:
    """Codes by name, as its lists have them; codes go into addresses and are checked."""
    if not isinstance(told, list):
        raise Transient(say("{where}: the answer is no list", where="fipe"), code="bad_answer")
    found = {}
    for each in filter(lambda each: isinstance(each, dict), told):
        code, name = str(each.get("codigo")), each.get("nome")
        if isinstance(name, str) and re.fullmatch(r"[0-9A-Za-z-]{1,20}", code):
            found[code] = name
    return found


def _best(known: Mapping[str, str], wanted: str) -> str:
    """The code of the name that has most of the wanted words, and fewest others."""
    words = _words(wanted)
    ranked = sorted(
        known.items(),
        key=lambda each: (-len(words & _words(each[1])), len(_words(each[1])), each[0]),
    )
    if not ranked or not words & _words(ranked[0][1]):
        raise Permanent(
            say("fipe: nothing is called like {wanted!r:.80}", wanted=wanted), code="no_vehicle"
        )
    return ranked[0][0]


def _of_year(known: Mapping[str, str], vehicle: Vehicle) -> str:
    right = {code: name for code, name in known.items() if _says_year(code, name, vehicle.year)}
    if not right:
        raise Permanent(
            say(
                "fipe: there is no {year} of the model {model!r:.80}",
                year=vehicle.year,
                model=vehicle.model,
            ),
            code="no_vehicle",
        )
    if vehicle.fuel:
        fuel = _words(vehicle.fuel)
        for code, name in right.items():
            if fuel & _words(name):
                return code
    return min(right)


def _says_year(code: str, name: str, year: int) -> bool:
    return code.startswith(f"{year}-") or str(year) in name.split()


def _words(text: str | Iterable[str]) -> frozenset[str]:
    plain = normalize("NFKD", str(text)).encode("ascii", "ignore").decode()
    return frozenset(re.findall(r"[a-z0-9.]+", plain.casefold()))
