"""What a price is, and what a page says: the pure rules of quotes."""

from decimal import Decimal

import pytest

from retoma.apps.quotes.clients.reading import read_page
from retoma.apps.quotes.model import NEXT, PERCENT, NotAPrice, read_price, robust_price
from retoma.apps.quotes.model import ProcessingCheckpoint as C


@pytest.mark.parametrize(
    ("said", "price"),
    [
        ("R$ 1.234,56", "1234.56"),
        ("R$ 4.131,46 à vista", "4131.46"),
        ("1234.56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("1.234", "1234.00"),
        ("12,90", "12.90"),
        ("R$ 12.345.678,90", "12345678.90"),
        ("1 234,50", "1234.50"),
        (99, "99.00"),
        (10.5, "10.50"),
        (1.005, "1.01"),  # a double is a little less
    ],
)
def test_a_price_is_read_as_it_is_meant(said, price):
    assert price == str(read_price(said))


@pytest.mark.parametrize(
    ("said", "currency", "code"),
    [
        ("sob consulta", None, "price_on_request"),
        ("", None, "price_on_request"),
        ("0", None, "price_not_positive"),
        ("R$ 0,00", None, "price_not_positive"),
        ("-5", None, "price_not_positive"),
        ("-R$ 10,00", None, "price_not_positive"),
        ("R$ -10,00", None, "price_not_positive"),
        ("US$ 30", None, "foreign_currency"),
        ("30", "USD", "foreign_currency"),
        ("9" * 20, None, "price_absurd"),
        ("- R$ 10,00", None, "price_not_positive"),
        ("a - 10,00", None, "price_not_positive"),
        (
            "-\t" * 100_000,
            None,
            "price_on_request",
        ),  # once it took the third power of its length
        (" " * 100_000 + "x", None, "price_on_request"),
    ],
)
def test_what_is_no_price_says_why(said, currency, code):
    with pytest.raises(NotAPrice) as told:
        read_price(said, currency)
    assert code == told.value.code


def test_one_shops_mistake_moves_nothing():
    told = [Decimal(each) for each in (98, 100, 105, 1000)]

    assert 100 == robust_price(told).value
    assert (3,) == robust_price(told).apart


def test_the_middle_of_two_prices_is_exact():
    """As floats it was 0.10 or 0.15, by how the machine writes them."""
    assert Decimal("0.13") == robust_price([Decimal("0.10"), Decimal("0.15")]).value
    large = [Decimal("9999999999.98"), Decimal("9999999999.99")]
    assert Decimal("9999999999.99") == robust_price(large).value
    assert 50 == robust_price([Decimal(50)]).value
    assert () == robust_price([Decimal(each) for each in (100, 104, 108)]).apart


def test_what_machines_are_told_comes_before_what_is_shown():
    told = '<script type="application/ld+json">{"@type":"Offer","price":"10.00","priceCurrency":"BRL"}</script>'
    shown = '<span class="price">R$ 99,00</span>'
    graph = '<meta property="product:price:amount" content="20.50">'
    micro = '<span itemprop="price" content="30"></span>'

    assert (Decimal(10), "json_ld") == read_page(told + graph + micro + shown)
    assert (Decimal("20.5"), "open_graph") == read_page(graph + micro + shown)
    assert (Decimal(30), "microdata") == read_page(micro + shown)
    assert (Decimal(99), "selector") == read_page(shown)


def test_a_page_nested_without_end_is_not_even_parsed():
    bomb = "<div>" * 100_000

    with pytest.raises(NotAPrice, match="deeper"):
        read_page(bomb)


def test_every_checkpoint_has_a_successor_and_a_percentage_that_only_grows():
    assert set(C) == NEXT.keys() == PERCENT.keys()
    for here, following in NEXT.items():
        assert all(PERCENT[each] >= PERCENT[here] for each in following), here
