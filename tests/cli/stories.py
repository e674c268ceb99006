"""What the runners of these tests run."""

from retoma import Context, Park, Permanent, Retoma

HOPELESS = 3


def app_on(url: str) -> Retoma:
    app = Retoma(url)
    app.job(story)
    app.job(note)
    app.job(shy)
    return app


async def story(ctx: Context, number: int) -> int:
    """Doubles, unless it is hopeless."""
    doubled = await ctx.step("double", double, number)
    if number == HOPELESS:
        raise Permanent("three cannot be done", code="no_three")
    return doubled


async def double(number: int) -> int:
    return number * 2


async def note(ctx: Context, text: str) -> str:
    return text


async def shy(ctx: Context, number: int) -> int | Park:
    """Waits for a person the first time it is asked."""
    return Park("may I?")
