"""A scrape, read as Prometheus would read it."""

from collections.abc import Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from retoma import Retoma
from retoma.web.metrics import exposition

Labels = frozenset[tuple[str, str]]
Scrape = Mapping[str, Mapping[Labels, float]]


def read(text: str) -> Scrape:
    """By name and labels; nothing may stand there twice."""
    told: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = told.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            assert labels not in series, sample
            series[labels] = sample.value
    return told


async def scraped(app: Retoma) -> Scrape:
    """Without a server between."""
    meter = await app.insights.metrics()
    return read(exposition(meter, "test").decode())


def value(scrape: Scrape, name: str, **labels: Any) -> float:
    """Of the one series that has these labels among its own."""
    found = of(scrape, name, **labels)
    assert 1 == len(found), (name, labels, found)
    return found[0]


def of(scrape: Scrape, name: str, **labels: Any) -> list[float]:
    wanted = {(key, str(text)) for key, text in labels.items()}
    return [n for its, n in scrape.get(name, {}).items() if wanted <= its]


def names(text: str) -> dict[str, str]:
    """Every family and its type, also where it has no series."""
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: family.type
        for family in text_string_to_metric_families(text)
    }
