"""The tables of cars, motorcycles and trucks: makes, models, years and values, the same for the same seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Final

from retoma.apps.quotes.sandbox.money import to_cents

NEWEST: Final = 2024
A_YEAR: Final = 0.93  # of its value is left after each
MONTH: Final = "novembro de 2025"
CAR, MOTORCYCLE, TRUCK = "car", "motorcycle", "truck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """As the table writes it, and as people do."""

    id: int
    name: str
    called: str
    kind: str = CAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model of a make, in all its years."""

    id: int
    make: Make
    name: str
    called: str  # its words are in no other model's name of this make, all together
    fuel: str
    since: int
    new: int  # R$ when it was new

    @property
    def years(self) -> Sequence[int]:
        return range(NEWEST, self.since - 1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Car:
    """One model of one year: all that a value hangs on."""

    model: Model
    year: int
    value: Decimal

    @property
    def year_code(self) -> str:
        return f"{self.year}-{FUELS[self.model.fuel]}"

    @property
    def fipe_code(self) -> str:
        return f"{self.model.make.id:03d}{self.model.id % 1000:03d}-{self.model.id % 10}"


FUELS: Final = {"Gasolina": 1, "Álcool": 2, "Diesel": 3, "Flex": 5}
MAKES: Final = (
    Make(id=59, name="VW - VolksWagen", called="Volkswagen"),
    Make(id=21, name="Fiat", called="Fiat"),
    Make(id=23, name="GM - Chevrolet", called="Chevrolet"),
    Make(id=22, name="Ford", called="Ford"),
    Make(id=25, name="Honda", called="Honda"),
    Make(id=56, name="Toyota", called="Toyota"),
    Make(id=26, name="Hyundai", called="Hyundai"),
    Make(id=48, name="Renault", called="Renault"),
    Make(id=80, name="HONDA", called="Honda", kind=MOTORCYCLE),
    Make(id=101, name="YAMAHA", called="Yamaha", kind=MOTORCYCLE),
    Make(id=114, name="SCANIA", called="Scania", kind=TRUCK),
    Make(id=116, name="VOLVO", called="Volvo", kind=TRUCK),
)
# Make, name in the table, as people say it, fuel, first year, R$ when new.
_MODELS: Final = (
    (59, "Gol 1.0 Mi Total Flex 8V 4p", "Gol 1.0", "Flex", 2009, 52_000),
    (59, "Gol 1.6 Power Mi Total Flex 8V 4p", "Gol 1.6", "Flex", 2009, 61_000),
    (59, "AMAROK High.CD 2.0 16V TDI 4x4 Dies. Aut", "Amarok 2.0", "Diesel", 2011, 215_000),
    (59, "Fusca 1.6", "Fusca 1.6", "Gasolina", 1993, 48_000),
    (21, "Uno Vivace 1.0 EVO Fire Flex 8V 5p", "Uno Vivace 1.0", "Flex", 2010, 43_000),
    (21, "Strada Working 1.4 mpi Fire Flex 8V CS", "Strada 1.4", "Flex", 2012, 78_000),
    (21, "Toro Freedom 2.0 16V 4x4 Diesel Aut.", "Toro 2.0", "Diesel", 2016, 178_000),
    (23, "ONIX HATCH LT 1.0 12V Flex 5p Mec.", "Onix LT 1.0", "Flex", 2013, 81_000),
    (23, "S10 Pick-Up LTZ 2.8 TDI 4x4 CD Dies.Aut", "S10 2.8", "Diesel", 2013, 248_000),
    (23, "Corsa Sed. Super 1.0 MPFI 8V 71cv", "Corsa 1.0", "Álcool", 2003, 32_000),
    (22, "Ka 1.0 SE/SE Plus TiVCT Flex 5p", "Ka 1.0", "Flex", 2015, 55_000),
    (22, "Ranger XLT 3.2 20V 4x4 CD Diesel Aut.", "Ranger 3.2", "Diesel", 2013, 232_000),
    (25, "CITY Sedan EX 1.5 Flex 16V 4p Aut.", "City EX 1.5", "Flex", 2010, 108_000),
    (25, "FIT LX 1.4/ 1.4 Flex 8V/16V 5p Mec.", "Fit LX 1.4", "Flex", 2006, 62_000),
    (56, "Corolla XEi 2.0 Flex 16V Aut.", "Corolla XEi 2.0", "Flex", 2011, 148_000),
    (56, "Hilux CD SRV D4-D 4x4 3.0 TDI Diesel Aut", "Hilux 3.0", "Diesel", 2006, 262_000),
    (26, "HB20 C./C.Plus/C.Style 1.0 Flex 12V Mec.", "HB20 1.0", "Flex", 2013, 76_000),
    (48, "SANDERO Expression Flex 1.0 12V 5p", "Sandero 1.0", "Flex", 2015, 64_000),
    (48, "Kangoo Express 1.6 16V 95cv", "Kangoo 1.6", "Gasolina", 2001, 57_000),
    (80, "CG 160 TITAN FLEXONE", "CG 160 Titan", "Flex", 2016, 17_000),
    (80, "NXR 160 BROS ESDD FLEXONE", "Bros 160", "Flex", 2015, 19_000),
    (101, "FAZER 250 BLUEFLEX", "Fazer 250", "Flex", 2013, 22_000),
    (114, "R-450 A 6x2 2p (diesel)(E5)", "R-450 6x2", "Diesel", 2018, 690_000),
    (116, "FH 540 6x4 2p (diesel)(E5)", "FH 540 6x4", "Diesel", 2016, 780_000),
)


class Table:
    """Every vehicle of one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        makes = {make.id: make for make in MAKES}
        self.models = tuple(
            Model(
                id=make * 100 + place,
                make=makes[make],
                name=name,
                called=called,
                fuel=fuel,
                since=since,
                new=new,
            )
            for place, (make, name, called, fuel, since, new) in enumerate(_MODELS)
        )

    @property
    def cars(self) -> Sequence[Model]:
        return [model for model in self.models if model.make.kind == CAR]

    def models_of(self, make: int) -> Sequence[Model]:
        return [model for model in self.models if model.make.id == make]

    def car(self, model: Model, year: int) -> Car:
        chance = Random(f"{self._seed}:car:{model.id}:{year}")  # noqa: S311 — a world, not a secret
        worth = model.new * A_YEAR ** (NEWEST - year) * chance.uniform(0.97, 1.03)
        return Car(model=model, year=year, value=to_cents(round(worth)))

    def named(self, text: str) -> Model | None:
        """The model that somebody means, if it is in the table."""
        words = set(text.casefold().replace(",", " ").split())
        meant = (
            model
            for model in self.models
            if {*model.called.casefold().split(), model.make.called.casefold()} <= words
        )
        return next(meant, None)
