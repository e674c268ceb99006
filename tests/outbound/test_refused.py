"""Nobody leads a request of ours to where it may not go (Show 5, PROMISES 5.4, §6 rows 17 and 33)."""

import asyncio

import pytest

from retoma import BadInput, Permanent, Transient, Unsure, settings
from retoma.outbound import Blocked, Outbound, Policy
from retoma.outbound.call import prepare
from tests.outbound.fakes import (
    OK,
    OTHER,
    PUBLIC,
    Names,
    Streets,
    answer,
    redirect,
    serving,
    spying,
)

SHOP = Policy(
    purpose="shop",
    hosts={"shop.example", "other.example", "127.0.0.1", "localhost", "inside.example"},
    schemes={"http"},
    redirects=3,
)
INSIDE = [
    "127.0.0.1",
    "10.0.0.7",
    "169.254.169.254",
    "::1",
    "::ffff:127.0.0.1",
    "fd00:ec2::254",
]


@pytest.mark.parametrize("address", INSIDE)
async def test_a_name_that_leads_inside_is_refused_before_a_socket_is_opened(address):
    async with Outbound(resolver=Names(shop_example=[[address]])) as out:
        with spying() as seen, pytest.raises(Permanent, match="not allowed") as refused:
            await out.get(SHOP, "http://shop.example/")

    assert "ssrf_blocked" == refused.value.code
    assert [] == seen


async def test_one_address_that_is_refused_refuses_the_host():
    streets = Streets()
    names = Names(shop_example=[[PUBLIC, "10.0.0.7"]])
    async with Outbound(resolver=names, network=streets) as out:
        with pytest.raises(Permanent, match="private"):
            await out.get(SHOP, "http://shop.example/")

    assert [] == streets.dialled


async def test_a_name_that_changes_between_check_and_connection_changes_nothing():
    """The connection goes to the very address that was looked at; the name is asked once."""
    async with serving() as server:
        streets = Streets().leads(PUBLIC, server)
        names = Names(shop_example=[[PUBLIC], ["127.0.0.1"]])
        async with Outbound(resolver=names, network=streets) as out:
            first = await out.get(SHOP, "http://shop.example/a")
            kept = await out.get(SHOP, "http://shop.example/b")  # the same connection
            await out.close()
            with spying() as seen, pytest.raises(Permanent, match="loopback"):
                await out.get(SHOP, "http://shop.example/c")

    assert [(PUBLIC, 80)] == streets.dialled
    assert ["shop.example"] * 2 == names.asked
    assert ["shop.example"] * 2 == [asked.headers["host"] for asked in server.asked]
    assert ((200, 200), []) == ((first.status, kept.status), seen)


async def test_every_address_is_tried_until_one_answers():
    async with serving() as server:
        streets = Streets().leads(OTHER, server)
        async with Outbound(
            resolver=Names(shop_example=[[PUBLIC, OTHER]]), network=streets
        ) as out:
            assert 200 == (await out.get(SHOP, "http://shop.example/")).status

    assert [(PUBLIC, 80), (OTHER, 80)] == streets.dialled


@pytest.mark.parametrize(
    "location",
    [
        *("http://127.0.0.1/", "http://localhost/", "http://inside.example/", "//127.0.0.1/"),
        *(
            "http://2130706433/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://0x7f.1/",
        ),
        *("https://shop.example/", "ftp://shop.example/", "file:///etc/passwd", "gopher://x"),
        *("http://shop.example:22/", "http://u:p@shop.example/", "http://evil.example/"),
        *("http://169.254.169.254/latest/meta-data", "http://shop.example@127.0.0.1/"),
        *("http://[", "http://exa mple/", "javascript:alert(1)"),
        "http://shop.example:99999999999/",
    ],
)
async def test_a_redirect_is_looked_at_as_hard_as_the_first_address(location):
    async with serving(redirect(location)) as server:
        streets = Streets().leads(PUBLIC, server)
        names = Names(
            shop_example=[[PUBLIC]], localhost=[["127.0.0.1"]], inside_example=[["10.0.0.7"]]
        )
        async with Outbound(resolver=names, network=streets) as out:
            with pytest.raises(Permanent) as refused:
                await out.get(SHOP, "http://shop.example/")

    assert "ssrf_blocked" == refused.value.code
    assert [(PUBLIC, 80)] == streets.dialled
    assert 1 == len(server.asked)


async def test_redirects_come_to_an_end():
    async with serving(redirect("/again")) as server:
        out = Outbound(
            resolver=Names(shop_example=[[PUBLIC]]), network=Streets().leads(PUBLIC, server)
        )
        async with out:
            with pytest.raises(Permanent, match="answered 302") as ended:
                await out.get(SHOP, "http://shop.example/")

    assert "permanent" == ended.value.code
    assert SHOP.redirects + 1 == len(server.asked)


async def test_without_leave_no_redirect_is_followed():
    async with serving(redirect("/elsewhere")) as server, Outbound() as out:
        with pytest.raises(Permanent, match="answered 302"):
            await out.get(Policy.toward("x", server.url, private=True), server.url)

    assert 1 == len(server.asked)


async def test_keys_stay_behind_where_a_redirect_changes_the_host():
    headers = {
        "Authorization": "Bearer canary",
        "X-Api-Key": "canary",
        "Cookie": "canary",
        "Accept": "text/plain",
    }
    async with serving(redirect("http://other.example/x")) as one, serving() as two:
        streets = Streets().leads(PUBLIC, one).leads(OTHER, two)
        names = Names(shop_example=[[PUBLIC]], other_example=[[OTHER]])
        async with Outbound(resolver=names, network=streets) as out:
            await out.get(SHOP, "http://shop.example/?key=canary", headers=headers)

    assert {"Bearer canary", "canary"} <= set(one.asked[0].headers.values())
    assert "text/plain" == two.asked[0].headers["accept"]
    assert "canary" not in str(two.asked)


async def test_keys_go_along_to_the_same_host():
    def says(asked):
        return OK if asked.target == "/b" else redirect("/b")

    async with serving(says) as server:
        streets = Streets().leads(PUBLIC, server)
        async with Outbound(resolver=Names(shop_example=[[PUBLIC]]), network=streets) as out:
            await out.get(SHOP, "http://shop.example/a", headers={"X-Api-Key": "mine"})

    assert ["mine", "mine"] == [asked.headers["x-api-key"] for asked in server.asked]


@pytest.mark.parametrize(
    ("status", "method", "body"), [(302, "GET", b""), (303, "GET", b""), (307, "POST", b"{}")]
)
async def test_a_redirect_repeats_a_body_only_where_it_must(status, method, body):
    def says(asked):
        return OK if asked.target == "/b" else redirect("/b", status)

    async with serving(says) as server:
        streets = Streets().leads(PUBLIC, server)
        async with Outbound(resolver=Names(shop_example=[[PUBLIC]]), network=streets) as out:
            await out.post(SHOP, "http://shop.example/a", json={})

    assert (method, body) == (server.asked[1].method, server.asked[1].body)
    assert ("content-type" in server.asked[1].headers) is bool(body)


async def test_a_body_is_not_sent_on_to_another_host():
    """A 307 may have been said after the deed: that it was refused tells nothing of the first."""
    async with serving(redirect("http://other.example/", 307)) as server:
        streets = Streets().leads(PUBLIC, server)
        async with Outbound(resolver=Names(shop_example=[[PUBLIC]]), network=streets) as out:
            with pytest.raises(Unsure, match="not followed with a request body") as refused:
                await out.post(SHOP, "http://shop.example/", json={"key": "canary"})

    assert "ssrf_blocked" == refused.value.code
    assert [(PUBLIC, 80)] == streets.dialled


@pytest.mark.parametrize("then", [answer(404), answer(500), answer(200, b"no json")])
async def test_e6_what_follows_a_deed_does_not_undo_it(then):
    """303 says that it was done, and where to read of it; what is read there is another matter."""

    def says(asked):
        return redirect("/done", 303) if asked.method == "POST" else then

    async with serving(says) as server:
        streets = Streets().leads(PUBLIC, server)
        async with Outbound(resolver=Names(shop_example=[[PUBLIC]]), network=streets) as out:
            with pytest.raises(Unsure):
                await (await out.post(SHOP, "http://shop.example/a", json={})).json()


async def test_from_https_nobody_is_led_to_http():
    both = Policy(purpose="x", hosts={"shop.example"}, schemes={"http", "https"}, redirects=1)
    nothing = dict.fromkeys(("params", "headers", "json", "form", "content", "proxy"))
    call = prepare(both, "GET", "https://shop.example/", **nothing)

    with pytest.raises(Blocked, match="from https to http"):
        call.follow_redirect(302, "http://shop.example/")


async def test_a_private_host_may_be_asked_where_the_operator_said_so():
    async with serving() as server:
        with spying() as seen:
            async with Outbound(resolver=Names(worker_internal=[["127.0.0.1"]])) as out:
                policy = Policy.toward(
                    "worker", f"http://worker.internal:{server.port}", private=True
                )
                await out.get(policy, f"http://worker.internal:{server.port}/")

    assert [("127.0.0.1", server.port)] == seen  # and so the spy is no sleeper


async def test_a_private_host_that_turns_to_a_metadata_service_is_refused():
    policy = Policy.toward("worker", "http://worker.internal", private=True)
    async with Outbound(resolver=Names(worker_internal=[["169.254.169.254"]])) as out:
        with spying() as seen, pytest.raises(Permanent, match="metadata"):
            await out.get(policy, "http://worker.internal/")

    assert [] == seen


# — what the operator allows for every purpose that names it —

HOMES = {"worker_internal": [["10.0.0.7"]], "other_internal": [["10.0.0.8"]]}


async def test_the_operators_word_opens_one_private_host_by_name(monkeypatch):
    async with serving() as server:
        monkeypatch.setenv("RETOMA_PRIVATE_HOSTS", " Worker.internal , db.internal")
        streets = Streets(**{"10.0.0.7": server.port})
        policy = Policy(purpose="worker", hosts={"worker.internal"}, schemes={"http"})
        async with Outbound(resolver=Names(**HOMES), network=streets) as out:
            answer = await out.get(policy, "http://worker.internal/")
            await out.check(policy, "http://worker.internal/")

    assert 200 == answer.status


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        ({"other.internal"}, "http://other.internal/"),  # not allowed by the operator
        (
            {"*"},
            "http://worker.internal/",
        ),  # allowed, but nobody named it: a page may lead there
        ({"*.internal"}, "http://worker.internal/"),
        ({"worker.internal.evil.example"}, "http://worker.internal.evil.example/"),
        ({"10.0.0.7"}, "http://10.0.0.7/"),  # a name is allowed, not its address
        ({"127.0.0.1"}, "http://127.0.0.1/"),
        ({"localhost"}, "http://localhost/"),
    ],
)
async def test_everything_else_private_stays_refused(hosts, url, monkeypatch):
    monkeypatch.setenv("RETOMA_PRIVATE_HOSTS", "worker.internal")
    policy = Policy(purpose="worker", hosts=hosts, schemes={"http"})
    inside = Names(**HOMES, worker_internal_evil_example=[["10.0.0.7"]], localhost=[["::1"]])
    async with Outbound(resolver=inside) as out:
        with spying() as seen, pytest.raises(Permanent) as refused:
            await out.get(policy, url)

    assert ("ssrf_blocked", []) == (refused.value.code, seen)


@pytest.mark.parametrize("address", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1"])  # noqa: S104
async def test_what_no_operator_may_allow_stays_refused(address, monkeypatch):
    monkeypatch.setenv("RETOMA_PRIVATE_HOSTS", "worker.internal")
    policy = Policy(purpose="worker", hosts={"worker.internal"}, schemes={"http"})
    async with Outbound(resolver=Names(worker_internal=[[address]])) as out:
        with spying() as seen, pytest.raises(Permanent):
            await out.get(policy, "http://worker.internal/")

    assert [] == seen


async def test_a_redirect_of_the_allowed_host_leads_to_no_other_private_one(monkeypatch):
    monkeypatch.setenv("RETOMA_PRIVATE_HOSTS", "worker.internal")
    policy = Policy(
        purpose="worker",
        hosts={"worker.internal", "other.internal"},
        schemes={"http"},
        redirects=1,
    )
    async with serving(redirect("http://other.internal/")) as server:
        streets = Streets(**{"10.0.0.7": server.port, "10.0.0.8": server.port})
        async with Outbound(resolver=Names(**HOMES), network=streets) as out:
            with pytest.raises(Permanent) as refused:
                await out.get(policy, "http://worker.internal/")

    assert "ssrf_blocked" == refused.value.code
    assert 1 == len(server.asked)


@pytest.mark.parametrize("told", ["*", "*.internal", "a b", "http://worker.internal", "0x7f.1"])
def test_an_operators_word_that_names_no_host_is_refused(told, monkeypatch):
    monkeypatch.setenv("RETOMA_PRIVATE_HOSTS", told)

    with pytest.raises(BadInput):
        Outbound()
    with pytest.raises(BadInput, match="RETOMA_PRIVATE_HOSTS"):
        settings.read()


async def test_whoever_saves_an_address_can_have_it_checked():
    names = Names(shop_example=[[PUBLIC]], inside_example=[["10.0.0.7"]])
    async with Outbound(resolver=names) as out:
        await out.check(SHOP, "http://shop.example/")
        for url in ("http://inside.example/", "http://evil/", "http://other.example/", "x"):
            with pytest.raises(Blocked):
                await out.check(SHOP, url)


async def test_a_name_nobody_knows_may_be_known_later():
    async with Outbound(resolver=Names()) as out:
        with pytest.raises(Transient, match="host not found") as failed:
            await out.get(SHOP, "http://shop.example/")

    assert "no_answer" == failed.value.code


@pytest.mark.parametrize(
    "answers", [[], ["not an address"], ["127.0.0.1\x00"], ["2606:4700::1%lo"]]
)
async def test_a_resolver_that_talks_nonsense_opens_no_socket(answers):
    async with Outbound(resolver=Names(shop_example=[answers])) as out:
        with spying() as seen, pytest.raises((Permanent, Transient)):
            await out.get(SHOP, "http://shop.example/")

    assert [] == seen


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "b\r\nX-C: d"},
        {"X-A\r\nX-C": "d"},
        {"X-A: b\r\nX-C": "d"},
        {"X-A": "b\nc"},
        {"X-A": "\x00"},
        {"X-A": "\x7f"},
        {"X-A": "ü"},
        {"": "x"},
        {"X A": "x"},
        {"Host": "evil"},
        {"Content-Length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Proxy-Authorization": "x"},
    ],
    ids=str,
)
async def test_a_header_cannot_smuggle_another(headers):
    async with serving() as server:
        policy = Policy.toward("x", server.url, private=True)
        async with Outbound() as out:
            with pytest.raises(BadInput):
                await out.get(policy, server.url, headers=headers)

    assert [] == server.asked


async def test_nothing_in_an_address_becomes_a_header():
    async with serving() as server:
        policy = Policy.toward("x", server.url, private=True)
        async with Outbound() as out:
            await out.get(policy, f"{server.url}/ü%0d%0aX: y", params={"a\r\nX": "b\r\nX: y"})
            with pytest.raises(Permanent, match="URL is not valid"):
                await out.get(policy, f"{server.url}/\r\nX: y")
            with pytest.raises(BadInput, match="the method must be one of"):
                await out.request(policy, "GET / HTTP/1.1\r\nX: y\r\n\r\n", server.url)

    assert ["/%C3%BC%0d%0aX:%20y?a%0D%0AX=b%0D%0AX%3A+y"] == [
        asked.target for asked in server.asked
    ]
    assert "x" not in server.asked[0].headers


@pytest.mark.parametrize(
    "asked",
    [
        *(
            {"json": float("nan")},
            {"json": {1, 2}},
            {"json": "\ud800"},
            {"form": {"a": "\ud800"}},
        ),
        *({"params": {"a": "\ud800"}}, {"content": "\ud800"}, {"content": 7}),
    ],
    ids=ascii,
)
async def test_what_cannot_be_written_is_refused_without_repeating_it(asked):
    with pytest.raises(BadInput, match="cannot be encoded") as refused:
        await Outbound().post(SHOP, "http://shop.example/", **asked)

    assert refused.value.__context__ is None


async def test_a_body_is_one_thing():
    with pytest.raises(BadInput, match="give only one of"):
        await Outbound().post(SHOP, "http://shop.example/", json={}, content=b"")


async def test_calls_beside_each_other_share_few_connections():
    async def slowly():
        yield answer(200, b"ok")[:-1]
        await asyncio.sleep(0)
        yield b"k"

    async with serving(lambda _: slowly()) as server:
        policy = Policy.toward("x", server.url, private=True, connections=2)
        async with Outbound() as out:
            got = await asyncio.gather(*(out.get(policy, server.url) for _ in range(10)))

    assert [b"ok"] * 10 == [each.body for each in got]
