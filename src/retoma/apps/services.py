"""Ask the services of an application, before work is started, whether they take our keys and know our models.

What is asked costs nothing. `retoma doctor` shows the answers, and so do the forms that start work.
"""

from collections.abc import Mapping
from typing import Final

from retoma.engine.errors import Permanent, Transient
from retoma.manifest import ServiceCheck, Standing
from retoma.outbound import Outbound, Policy
from retoma.secret import Secret
from retoma.words import say

DEADLINE: Final = 10.0  # seconds: a person waits for the answer
LARGEST: Final = 4 << 20  # bytes; a list of models has some hundred kilobytes


async def check_service(
    out: Outbound,
    name: str,
    url: str,
    *,
    headers: Mapping[str, str | Secret] | None = None,
    params: Mapping[str, str | Secret] | None = None,
    key: str,
    model: tuple[str, str] | None = None,
    certain: bool = True,
) -> ServiceCheck:
    """Ask an address that answers 2xx where all is well, 401 or 403 to a wrong key, 404 to an unknown model.

    `key`: the setting that holds the key. `model`: its name, and the setting that names it. `certain`: whether
    a 404 says that the model is not there; services that only resemble another may lack the address.
    """
    policy = Policy.toward(f"check {name}", url, deadline=DEADLINE, most_bytes=LARGEST)
    try:
        answer = await out.get(
            policy, url, headers=headers, params=params, accept=(401, 403, 404)
        )
    except (Transient, Permanent) as error:
        return ServiceCheck(
            name,
            Standing.UNKNOWN,
            say("{name} gave no usable answer: {error}", name=name, error=error),
            say("look at its address, and try again: until it answers jobs wait"),
        )
    if answer.status in (401, 403):
        return ServiceCheck(
            name,
            Standing.REFUSED,
            say("{name} refuses the key (HTTP {status})", name=name, status=answer.status),
            say("put a valid key into {setting}, and restart the runners", setting=key),
        )
    if answer.status == 404 and not certain:
        return ServiceCheck(
            name,
            Standing.UNKNOWN,
            say("{name} does not say whether it has the model", name=name),
        )
    if answer.status == 404:
        if model is None:
            found, setting = say("{name} is not at {url}", name=name, url=url), key
        else:
            found = say("{name} does not have the model {model}", name=name, model=model[0])
            setting = model[1]
        return ServiceCheck(
            name,
            Standing.REFUSED,
            found,
            say("correct {setting}, and restart the runners", setting=setting),
        )
    return ServiceCheck(
        name,
        Standing.READY,
        say("{name} takes the key and knows the model", name=name)
        if model is not None
        else say("{name} takes the key", name=name),
    )


def no_key(name: str, setting: str) -> ServiceCheck:
    return ServiceCheck(
        name,
        Standing.UNKNOWN,
        say("{setting} is not set here", setting=setting),
        say("set it where the runners run: without it jobs wait"),
    )
