"""The four services of the quotes in a box: real shapes, the truth by number, a log for each."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import anthropic
import httpx2
import pytest
from selectolax.lexbor import LexborHTMLParser

from retoma.apps.quotes.sandbox import (
    ANTHROPIC_KEY,
    SELECTORS,
    SERPAPI_KEY,
    SIZE,
    SPREAD,
    Catalogue,
    Odd,
    Offer,
    Page,
    Services,
    Vehicle,
    build_services,
    fingerprint,
    paid_twice,
)
from retoma.apps.quotes.sandbox.money import reais
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import BadInput
from tests.engine.aids import eventually

TRUTH = Catalogue(7)
PRODUCT = next(n for n in range(SIZE) if not TRUTH.is_vehicle(n))
CAR = next(n for n in range(SIZE) if TRUTH.is_vehicle(n))
TOOLS = [
    {
        "name": name,
        "description": "…",
        "input_schema": {"type": "object", "properties": {field: {} for field in fields}},
    }
    for name, fields in {
        "search_plan": ("query", "category", "brand", "must_have", "must_not"),
        "vehicle": ("brand", "model", "year", "fuel"),
    }.items()
]
SIGNED = {"x-api-key": ANTHROPIC_KEY, "anthropic-version": "2023-06-01"}


@asynccontextmanager
async def asked(box: Services) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=box)
    async with httpx2.AsyncClient(transport=transport, base_url="http://box.test") as client:
        yield client


@asynccontextmanager
async def claude(box: Services, key: str = ANTHROPIC_KEY) -> AsyncIterator[Any]:
    """The official SDK, which is told nothing but where."""
    http = anthropic.DefaultAsyncHttpxClient(transport=httpx2.ASGITransport(app=box))
    async with anthropic.AsyncAnthropic(
        api_key=key, base_url="http://box.test/anthropic", max_retries=0, http_client=http
    ) as client:
        yield client


class Hasty(Clock):
    """For whom waiting takes no time."""

    async def sleep(self, seconds: float) -> None:
        await self.give_way()


async def get(there: Services, path: str, query: str = "") -> None:
    """Without a client, which would not take half an answer."""
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode()}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Any) -> None:
        pass

    await there({**scope, "scheme": "http", "headers": [(b"host", b"box.test")]}, receive, send)


def box(**how: Any) -> Services:
    return build_services(TRUTH, **how)


def question(text: str, **more: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": f"Analise: {text}"}]
    return {"model": "claude-x", "max_tokens": 500, "messages": said, "tools": TOOLS, **more}


async def look_for(client: httpx2.AsyncClient, q: str, **more: Any) -> httpx2.Response:
    told = {"engine": "google_shopping", "q": q, "api_key": SERPAPI_KEY, "hl": "pt", "gl": "br"}
    return await client.get("/serpapi/search.json", params={**told, **more})


# — the truth —


def test_there_are_ten_thousand_descriptions_and_no_two_are_alike():
    described = [TRUTH.describe(n) for n in range(SIZE)]
    vehicles = sum(TRUTH.is_vehicle(n) for n in range(SIZE))

    assert 10_000 == SIZE == len(set(described))
    assert 1_500 < vehicles < 2_500
    assert described[:50] == [Catalogue(7).describe(n) for n in range(50)]
    assert described[:50] != [Catalogue(8).describe(n) for n in range(50)]
    assert all(TRUTH.read(text) == TRUTH.item(n) for n, text in enumerate(described[:200]))
    with pytest.raises(BadInput):
        TRUTH.describe(SIZE)


def test_the_expected_price_is_near_the_value_whatever_stands_beside_it():
    for n in range(300):
        expected = TRUTH.expected(n)
        if expected.car is not None:
            assert expected.car.value == expected.price
            continue
        honest = [each.price for each in expected.offers if each.honest]
        value = expected.offers[0].product.value
        assert len(honest) % 2 == 1
        assert len(honest) > 2 * sum(not each.honest for each in expected.offers) / 5
        assert expected.price in honest
        assert all(
            abs(price / value - 1) <= Decimal(str(SPREAD)) + Decimal("0.001")
            for price in honest
            if price
        )


def test_words_of_a_person_mean_something_too():
    fridge = TRUTH.read("Geladeira duplex para a copa")
    car = TRUTH.read("um Volkswagen Gol 1.0 2015 prata")

    assert not isinstance(fridge, Vehicle)
    assert "geladeira" == fridge.noun
    assert fridge == TRUTH.read(str(fridge.plan["query"]))
    assert isinstance(car, Vehicle)
    assert (2015, "Gol 1.0") == (car.asked["year"], car.asked["model"])


# — analyses —


@pytest.mark.parametrize("n", [PRODUCT, CAR])
async def test_the_official_sdk_is_answered_with_the_tool_that_fits(n):
    there = box()
    async with claude(there) as client:
        message = await client.messages.create(**question(TRUTH.describe(n)))

    expected = TRUTH.expected(n)
    used = message.content[-1]
    assert ("tool_use", "tool_use") == (message.stop_reason, used.type)
    assert (expected.tool, dict(expected.input)) == (used.name, used.input)
    assert message.usage.input_tokens > message.usage.output_tokens > 0
    assert message._request_id.startswith("req_")
    [line] = there.log("anthropic")
    assert (n, True, 200) == (line["item"], line["paid"], line["status"])
    assert fingerprint(f"Analise: {TRUTH.describe(n)}") == line["input"]
    assert ANTHROPIC_KEY not in json.dumps(line)


async def test_who_must_use_a_tool_takes_the_one_there_is():
    async with claude(box()) as client:
        told = question(TRUTH.describe(CAR), tools=TOOLS[:1])
        free = await client.messages.create(**told)
        bound = await client.messages.create(**told, tool_choice={"type": "any"})

    assert ["end_turn", "tool_use"] == [free.stop_reason, bound.stop_reason]
    assert "search_plan" == bound.content[0].name


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (529, anthropic._exceptions.OverloadedError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (400, anthropic.BadRequestError),
    ],
)
async def test_the_official_sdk_knows_the_errors_for_what_they_are(status, error):
    there = box()
    async with asked(there) as client, claude(there) as sdk:
        told = {"trouble": "status", "status": status, "retry_after": 7}
        await client.post("/anthropic/_sandbox/faults", json=told)
        with pytest.raises(error) as met:
            await sdk.messages.create(**question(TRUTH.describe(PRODUCT)))
        await sdk.messages.create(**question(TRUTH.describe(PRODUCT)))

    assert "7" == met.value.response.headers["retry-after"]
    assert "error" == met.value.body["type"]
    assert [False, True] == [bool(line.get("paid")) for line in there.log("anthropic")]
    assert {} == paid_twice(there.log("anthropic"))


async def test_a_wrong_key_and_a_question_that_makes_no_sense_are_refused():
    there = box()
    async with claude(there, "sk-ant-other") as sdk:
        with pytest.raises(anthropic.AuthenticationError):
            await sdk.messages.create(**question("x"))

    async with asked(there) as client:
        for headers, told, status, kind in [
            ({}, question("x"), 400, "invalid_request_error"),
            ({"anthropic-version": "2023-06-01"}, question("x"), 401, "authentication_error"),
            (SIGNED, {"model": "m"}, 400, "invalid_request_error"),
            (SIGNED, question("x", max_tokens=0), 400, "invalid_request_error"),
            (SIGNED, question("x", messages=[]), 400, "invalid_request_error"),
            (SIGNED, question("x", tools=[{}]), 400, "invalid_request_error"),
            (SIGNED, ["x"], 400, "invalid_request_error"),
        ]:
            answer = await client.post("/anthropic/v1/messages", json=told, headers=headers)
            assert (status, kind) == (answer.status_code, answer.json()["error"]["type"])
            assert answer.json()["request_id"] == answer.headers["request-id"]
        assert 404 == (await client.post("/anthropic/v1/other", json={})).status_code


@pytest.mark.parametrize(
    ("odd", "reason", "kinds"),
    [
        (Odd.NO_TOOL, "end_turn", ["text"]),
        (Odd.NOT_JSON, "end_turn", ["text"]),
        (Odd.WRONG_SHAPE, "tool_use", ["tool_use"]),
        (Odd.CUT_SHORT, "max_tokens", ["tool_use"]),
        (Odd.REFUSED, "refusal", []),
    ],
)
async def test_an_analysis_may_be_no_plan(odd, reason, kinds):
    async with claude(box()) as client:
        message = await client.messages.create(**question(TRUTH.describe(PRODUCT, odd)))

    assert (reason, kinds) == (message.stop_reason, [each.type for each in message.content])
    assert all(
        each.input != TRUTH.expected(PRODUCT).input
        for each in message.content
        if each.type == "tool_use"
    )


async def test_a_fault_may_be_about_one_description_alone():
    there = box()
    other = next(n for n in range(PRODUCT + 1, SIZE) if not TRUTH.is_vehicle(n))
    async with asked(there) as client:
        code = TRUTH.item(PRODUCT).code
        told = {"trouble": "status", "status": 529, "about": code, "times": None}
        assert 204 == (await client.post("/anthropic/_sandbox/faults", json=told)).status_code
        met = [
            await client.post(
                "/anthropic/v1/messages", json=question(TRUTH.describe(n)), headers=SIGNED
            )
            for n in (PRODUCT, other, PRODUCT)
        ]

    assert [529, 200, 529] == [each.status_code for each in met]


# — searches —


async def test_a_search_shows_the_offers_and_leads_on_by_pages():
    many = next(n for n in range(SIZE) if len(TRUTH.expected(n).offers) > 40)
    expected = TRUTH.expected(many)
    there = box()
    async with asked(there) as client:
        first = (await look_for(client, expected.input["query"])).json()
        on = first["serpapi_pagination"]["next"]
        second = (
            await client.get(on, params={**httpx2.URL(on).params, "api_key": SERPAPI_KEY})
        ).json()

    shown = [*first["shopping_results"], *second["shopping_results"]]
    assert "Success" == first["search_metadata"]["status"]
    assert "next" not in second["serpapi_pagination"]
    assert [
        (each.place, each.title, reais(each.listed), f"http://box.test/shops{each.path}")
        for each in expected.offers
    ] == [(each["position"], each["title"], each["price"], each["link"]) for each in shown]
    lines = there.log("serpapi")
    assert [(many, True), (many, True)] == [(line["item"], line["paid"]) for line in lines]
    assert {} == paid_twice(lines)
    assert SERPAPI_KEY not in json.dumps(lines)


async def test_searches_are_refused_as_theirs_are():
    query = TRUTH.expected(PRODUCT).input["query"]
    async with asked(box()) as client:
        nobody = await look_for(client, TRUTH.expected(PRODUCT, Odd.NO_RESULTS).input["query"])
        stranger = await look_for(client, query, api_key="other")
        nothing = await look_for(client, " ")
        engine = await look_for(client, query, engine="bing")
        await client.post("/serpapi/_sandbox/faults", json={"trouble": "status", "status": 429})
        poor = await look_for(client, query)

    assert (200, "Google hasn't returned any results for this query.") == (
        nobody.status_code,
        nobody.json()["error"],
    )
    assert [401, 400, 400, 429] == [
        each.status_code for each in (stranger, nothing, engine, poor)
    ]
    assert "Invalid API key" in stranger.json()["error"]
    assert "run out of searches" in poor.json()["error"]


async def test_who_pays_twice_is_seen():
    there = box()
    query = TRUTH.expected(PRODUCT).input["query"]
    async with asked(there) as client:
        cut = {"trouble": "cut"}  # the answer is lost, and paid
        await client.post("/serpapi/_sandbox/faults", json=cut)
        told = {"engine": "google_shopping", "q": query, "api_key": SERPAPI_KEY}
        await get(there, "/serpapi/search.json", urlencode(told))
        await look_for(client, query)

    assert ["cut", None] == [line["fault"] for line in there.log("serpapi")]
    assert [2] == list(paid_twice(there.log("serpapi")).values())


# — cars —


async def test_a_car_is_found_from_its_make_to_its_value():
    expected = TRUTH.expected(CAR)
    assert expected.car is not None
    below = "/fipe/api/v1/carros/marcas"
    async with asked(box()) as client:
        makes = (await client.get(below)).json()
        make = one(makes, expected.input["brand"])
        models = (await client.get(f"{below}/{make}/modelos")).json()["modelos"]
        model = one(models, expected.input["model"])
        years = (await client.get(f"{below}/{make}/modelos/{model}/anos")).json()
        year = one(years, f"{expected.input['year']} {expected.input['fuel']}")
        value = (await client.get(f"{below}/{make}/modelos/{model}/anos/{year}")).json()
        lost = [
            (await client.get(f"{below}{path}")).status_code
            for path in (
                "/1/modelos",
                f"/{make}/modelos/1/anos",
                f"/{make}/modelos/{model}/anos/1-1",
            )
        ]
        await client.post("/fipe/_sandbox/faults", json={"trouble": "status", "status": 429})
        busy = await client.get(below)

    assert reais(expected.car.value) == value["Valor"]
    assert expected.input["year"] == value["AnoModelo"]
    assert [404, 404, 404] == lost
    assert (429, ["error"]) == (busy.status_code, list(busy.json()))


def one(listed: list[dict[str, Any]], words: str) -> Any:
    """The code of the one that has all the words."""
    wanted = words.casefold().split()
    [found] = [
        each["codigo"] for each in listed if all(w in each["nome"].casefold() for w in wanted)
    ]
    return found


async def test_every_car_is_found_by_what_people_call_it():
    for model in TRUTH.table.models:
        same = TRUTH.table.models_of(model.make.id)
        listed = [{"codigo": each.id, "nome": each.name} for each in same]
        assert model.id == one(listed, model.called)


# — shops —


async def test_every_honest_page_says_its_price_in_its_shops_way():
    ways = set()
    async with asked(box(late=0.0)) as client:
        for n in range(PRODUCT, PRODUCT + 12):
            for offer in TRUTH.expected(n).offers:
                if offer.honest:
                    answer = await client.get(f"/shops{offer.path}")
                    assert 200 == answer.status_code
                    way, price = read(answer.text)
                    assert (offer.price, "BRL") == price
                    ways.add(way)
                    assert offer.title == content(LexborHTMLParser(answer.text), "h1")

    assert {Page.JSON_LD, Page.OPEN_GRAPH, Page.MICRODATA, Page.MARKUP} == ways


def read(text: str) -> tuple[Page | None, tuple[Decimal, str] | None]:
    tree = LexborHTMLParser(text)
    linked = tree.css_first('script[type="application/ld+json"]')
    if linked is not None:
        return Page.JSON_LD, in_linked(json.loads(linked.text()))
    graph = tree.css_first('meta[property="product:price:amount"]')
    if graph is not None:
        money = content(tree, 'meta[property="product:price:currency"]')
        return Page.OPEN_GRAPH, (Decimal(graph.attributes["content"] or ""), money)
    data = tree.css_first('[itemprop="price"]')
    if data is not None:
        money = content(tree, '[itemprop="priceCurrency"]')
        return Page.MICRODATA, (Decimal(data.attributes["content"] or ""), money)
    for selector in SELECTORS:
        found = tree.css_first(selector)
        if found is not None and "R$" in found.text():
            digits = found.text().replace("R$", "").replace(".", "").replace(",", ".")
            return Page.MARKUP, (Decimal(digits.replace(" ", "")), "BRL")
    return None, None


def content(tree: LexborHTMLParser, selector: str) -> str:
    found = tree.css_first(selector)
    assert found is not None
    return found.attributes.get("content") or found.text()


def in_linked(told: Any) -> tuple[Decimal, str]:
    if isinstance(told, list):
        return in_linked(told[0])
    if "@graph" in told:
        return in_linked(told["@graph"])
    offer: Mapping[str, Any] = (
        told["offers"][0] if isinstance(told["offers"], list) else told["offers"]
    )
    return Decimal(str(offer.get("price", offer.get("lowPrice")))).quantize(
        Decimal("0.01")
    ), offer["priceCurrency"]


async def opened(client: httpx2.AsyncClient, odd: Odd) -> list[tuple[Offer, httpx2.Response]]:
    offers = TRUTH.expected(PRODUCT, odd).offers[:8]
    return [(each, await client.get(f"/shops{each.path}")) for each in offers]


@pytest.mark.parametrize(
    ("odd", "status"),
    [
        (Odd.BLOCKED, 403),
        (Odd.CAPTCHA, 200),
        (Odd.GONE, 404),
        (Odd.NO_PRICE, 200),
        (Odd.ON_REQUEST, 200),
        (Odd.TO_LOOPBACK, 302),
        (Odd.TO_METADATA, 302),
    ],
)
async def test_an_ill_page_says_no_price(odd, status):
    async with asked(box()) as client:
        met = await opened(client, odd)

    assert TRUTH.expected(PRODUCT, odd).price is None
    assert {status} == {answer.status_code for _, answer in met}
    assert {(None, None)} == {read(answer.text) for _, answer in met}
    if status == 302:
        where = {httpx2.URL(answer.headers["location"]).host for _, answer in met}
        assert where in ({"127.0.0.1"}, {"169.254.169.254"})


@pytest.mark.parametrize("odd", [Odd.ZERO, Odd.NEGATIVE, Odd.DOLLARS])
async def test_a_price_may_be_none_that_anybody_would_take(odd):
    async with asked(box()) as client:
        met = await opened(client, odd)

    said = [price for _, answer in met if (price := read(answer.text)[1]) is not None]
    assert said
    assert all(price <= 0 or money == "USD" for price, money in said)
    assert TRUTH.expected(PRODUCT, odd).price is None


async def test_a_nested_page_is_deeper_than_a_reader_goes():
    async with asked(box()) as client:
        [(_, answer), *_] = await opened(client, Odd.NESTED)

    assert 100_000 == answer.text.count("<div>")
    assert 0 == answer.text.count("</div>")
    assert TRUTH.expected(PRODUCT, Odd.NESTED).price is None


async def test_a_swollen_page_is_small_on_the_way_and_huge_at_home():
    there = box()
    offer = TRUTH.expected(PRODUCT, Odd.SWOLLEN).offers[0]
    async with asked(there) as client, client.stream("GET", f"/shops{offer.path}") as answer:
        sent = b"".join([part async for part in answer.aiter_raw()])

    assert len(sent) < 1024 * 1024
    assert 64 * 1024 * 1024 == len(gzip.decompress(sent))


# — the box —


async def still_open(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    return list((await client.get("/fipe/_sandbox/open")).json())


async def test_a_held_request_is_open_until_its_faults_are_taken_back():
    async with asked(box()) as client:
        await client.post("/fipe/_sandbox/faults", json={"trouble": "hold", "times": None})
        held = asyncio.create_task(client.get("/fipe/api/v1/carros/marcas"))
        found = await eventually(lambda: still_open(client))
        before = (await client.get("/fipe/_sandbox/log")).json()
        await client.delete("/fipe/_sandbox/faults")

        assert ["/api/v1/carros/marcas"] == [each["path"] for each in found]
        assert [] == before
        assert 200 == (await held).status_code
        assert [] == (await client.get("/fipe/_sandbox/open")).json()


async def test_each_service_has_its_own_log_in_memory_over_http_and_in_a_file(tmp_path):
    there = box(logs=tmp_path)
    async with asked(there) as client:
        await client.get("/fipe/api/v1/carros/marcas")
        await look_for(client, "geladeira")
        told = (await client.get("/fipe/_sandbox/log")).json()
        elsewhere = await client.get("/nowhere")

    assert [1, 1, 0, 0] == [
        len(there.log(name)) for name in ("fipe", "serpapi", "shops", "anthropic")
    ]
    assert there.log("fipe") == told == [json.loads((tmp_path / "fipe.jsonl").read_text())]
    assert 404 == elsewhere.status_code
    assert {"anthropic", "serpapi", "fipe", "shops"} == set(elsewhere.json()["services"])


async def test_a_request_takes_as_long_as_its_input_says():
    there = box(pace=0.001)
    async with asked(there) as client:
        for q in ("geladeira", "monitor", "geladeira"):
            await look_for(client, q)

    took = [line["seconds"] for line in there.log("serpapi")]
    assert took[0] == took[2] != took[1]
    assert all(0.0008 <= each <= 0.003 for each in took)


async def test_chance_brings_the_same_trouble_for_the_same_seed():
    async def fates() -> list[str | None]:
        there = box(faults=0.5, clock=Hasty())
        for _ in range(20):
            await get(there, "/fipe/api/v1/carros/marcas")
        return [line["fault"] for line in there.log("fipe")]

    first = await fates()
    assert first == await fates()
    assert {None} < set(first)
