"""`retoma prices`: what units cost, and what a dollar is worth."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from retoma import settings
from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.price import Price
from retoma.engine.store.price import Exchange
from retoma.library import Retoma
from retoma.words import say, speak

LARGEST = 4 * 1024 * 1024  # bytes of a list; what is cut off there is no TOML any more


def list_(database: str | None, as_json: bool, *, provider: str | None) -> None:
    async def both(app: Retoma) -> tuple[list[Price], Exchange | None]:
        return list(await app.prices.list()), await app.prices.exchange()

    found, rate = ask(database, both)
    shown = [each for each in found if provider in (None, each.provider)]
    if as_json:
        print_json({"prices": shown, "exchange": rate})
        return
    page = table(
        speak("provider"),
        speak("model"),
        speak("unit"),
        speak("price"),
        speak("for"),
        speak("since"),
        speak("by"),
    )
    for each in shown:
        page.add_row(
            clean(each.provider),
            clean(each.model or "*"),
            each.unit,
            f"{each.amount:f} {each.currency.upper()}",
            str(each.per),
            at(each.since),
            clean(each.by),
        )
    console().print(page)
    if rate is not None:
        console().print(
            speak(
                "1 USD is {rate} BRL since {since}",
                rate=f"{rate.brl_per_usd:f}",
                since=at(rate.since),
            )
        )


def set_(
    database: str | None,
    as_json: bool,
    provider: str,
    unit: str,
    price: str,
    *,
    model: str,
    currency: str,
    per: int,
    since: str | None,
) -> None:
    when = instant(since)
    ask(
        database,
        lambda app: app.prices.set(
            provider,
            unit,
            price,
            model=model,
            currency=currency,
            per=per,
            since=when,
            actor=ACTOR,
        ),
    )
    if as_json:
        print_json({"provider": provider, "model": model, "unit": unit, "price": price})
    else:
        print(
            speak(
                "{units} cost {price} {currency} for {per}",
                units=clean(" ".join(filter(None, (provider, model, unit)))),
                price=price,
                currency=currency.upper(),
                per=per,
            )
        )


def import_(database: str | None, as_json: bool, file: Path) -> None:
    text = _text(file)
    n = ask(database, lambda app: app.prices.read_in(text, actor=ACTOR))
    if as_json:
        print_json({"prices": n})
    else:
        print(speak("{n} prices hold now", n=n))


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(say("{file}: {error}", file=str(file), error=str(error))) from error


def exchange(database: str | None, as_json: bool, rate: str, *, since: str | None) -> None:
    when = instant(since)
    ask(database, lambda app: app.prices.set_exchange(rate, since=when, actor=ACTOR))
    if as_json:
        print_json({"brl_per_usd": rate})
    else:
        print(speak("1 USD is {rate} BRL", rate=rate))


def instant(text: str | None) -> datetime | None:
    """`2026-03-01`, or with a time; of our time zone unless it names one."""
    if text is None:
        return None
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(
            say("{text!r} is no date such as 2026-03-01 or 2026-03-01T08:30", text=text)
        ) from None
    return told if told.tzinfo else told.replace(tzinfo=ZoneInfo(settings.read().timezone))
