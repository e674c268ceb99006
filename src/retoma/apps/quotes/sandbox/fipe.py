"""The tables of vehicles over HTTP, in the shapes of the first version of FIPE's best known mirror."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from retoma.apps.quotes.sandbox.cars import (
    CAR,
    FUELS,
    MAKES,
    MONTH,
    MOTORCYCLE,
    TRUCK,
    Car,
    Model,
    Table,
)
from retoma.apps.quotes.sandbox.money import reais
from retoma.sandbox.box import SiteRequest
from retoma.sandbox.faults import Fault

ERRORS: Final[Mapping[int, str]] = {
    404: "Nada encontrado",
    429: "Limite de requisições excedido",
}
KINDS: Final = {"carros": CAR, "motos": MOTORCYCLE, "caminhoes": TRUCK}


class _Unknown(Exception):
    """Not in the table."""


def build_fipe(table: Table) -> Starlette:
    async def makes(request: Request) -> Response:
        kind = _kind(request)
        told = [each for each in MAKES if each.kind == kind]
        return JSONResponse([{"codigo": str(make.id), "nome": make.name} for make in told])

    async def models(request: Request) -> Response:
        found = _models(table, request)
        if not found:
            raise _Unknown
        years = {code: name for model in found for code, name in _years(model).items()}
        return JSONResponse(
            {
                "modelos": [{"codigo": model.id, "nome": model.name} for model in found],
                "anos": _coded(years),
            }
        )

    async def years(request: Request) -> Response:
        return JSONResponse(_coded(_years(_model(table, request))))

    async def value(request: Request) -> Response:
        model, code = _model(table, request), request.path_params["year"]
        if code not in _years(model):
            raise _Unknown
        return JSONResponse(_value(table.car(model, int(code.partition("-")[0]))))

    async def refused(_: Request, no: Exception) -> Response:
        return _error(no.status_code if isinstance(no, HTTPException) else 404)

    below = "/api/v1/{table}/marcas"
    return Starlette(
        routes=[
            Route(below, makes),
            Route(below + "/{make:int}/modelos", models),
            Route(below + "/{make:int}/modelos/{model:int}/anos", years),
            Route(below + "/{make:int}/modelos/{model:int}/anos/{year}", value),
        ],
        exception_handlers={HTTPException: refused, _Unknown: refused},
    )


def refusal(fault: Fault) -> Response:
    return _error(fault.status)


def notes(asked: SiteRequest) -> Mapping[str, Any]:
    return {"input": asked.path, "caller": asked.headers.get("user-agent")}


def _kind(request: Request) -> str:
    kind = KINDS.get(request.path_params["table"])
    if kind is None:
        raise _Unknown
    return kind


def _models(table: Table, request: Request) -> list[Model]:
    kind = _kind(request)
    found = table.models_of(request.path_params["make"])
    return [model for model in found if model.make.kind == kind]


def _model(table: Table, request: Request) -> Model:
    for model in _models(table, request):
        if model.id == request.path_params["model"]:
            return model
    raise _Unknown


def _years(model: Model) -> dict[str, str]:
    return {f"{year}-{FUELS[model.fuel]}": f"{year} {model.fuel}" for year in model.years}


def _coded(years: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {"codigo": code, "nome": name} for code, name in sorted(years.items(), reverse=True)
    ]


def _value(car: Car) -> dict[str, Any]:
    return {
        "TipoVeiculo": [*KINDS.values()].index(car.model.make.kind) + 1,
        "Valor": reais(car.value),
        "Marca": car.model.make.name,
        "Modelo": car.model.name,
        "AnoModelo": car.year,
        "Combustivel": car.model.fuel,
        "CodigoFipe": car.fipe_code,
        "MesReferencia": MONTH,
        "SiglaCombustivel": car.model.fuel[0],
    }


def _error(status: int) -> Response:
    return JSONResponse({"error": ERRORS.get(status, "Erro interno")}, status)
