"""Where a purpose may go, whatever the address looks like (PROMISES 5.4, §6 rows 17 and 18)."""

import pytest

from retoma import BadInput
from retoma.outbound import Blocked, Policy, Proxy

SHOP = Policy(
    purpose="shop", hosts={"shop.example", "*.cdn.example", "bücher.example"}, redirects=2
)
HOSTILE = [
    *(
        "http://shop.example/",
        "ftp://shop.example/",
        "file:///etc/passwd",
        "gopher://shop.example",
    ),
    *("", "shop.example", "//shop.example", "https:shop.example", "https:///x", "https://"),
    *("https://shop.example:8443/", "https://shop.example:0/", "https://shop.example:99999/"),
    *(
        "https://shop.example.evil/",
        "https://evil/shop.example",
        "https://evil.cdn.example.org/",
    ),
    *(
        "https://shop.example@evil/",
        "https://user:pw@shop.example/",
        "https://evil#@shop.example",
    ),
    *(
        "https://shop.example\\@evil/",
        "https://evil\\.shop.example/",
        "https://shop.example%00.evil/",
    ),
    *("https://shop.example%2eevil/", "https://shop%2Eexample/", "https://shop.example./"),
    *(
        "https://shop.example\r\nHost: evil/",
        "https://shop.example\t/",
        " https://shop.example/",
    ),
    *(
        "https://\u0455hop.example/",
        "https://shop.ex\u0430mple/",
        "https://xn--hop-lnd.example/",
    ),
    *(
        "https://cdn.example/",
        "https://.cdn.example/",
        "https://shop..example/",
        "https://[::1",
    ),
    *("https://[shop.example]/", "https://shop.example:443:80/", "javascript:alert(1)"),
    *("https://127.0.0.1/", "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://0x7f.1/"),
    *("https://2130706433/", "https://localhost/", "https://169.254.169.254/latest"),
    "https://" + "a" * 300 + ".example/",
    "https://shop.example/" + "a" * 70_000,
]


@pytest.mark.parametrize("url", HOSTILE)
def test_what_is_not_on_the_list_is_refused(url):
    with pytest.raises(Blocked):
        SHOP.check(url)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://shop.example", b"shop.example"),
        ("HTTPS://SHOP.Example:443/a?b#c", b"shop.example"),
        ("https://img.cdn.example/x", b"img.cdn.example"),
        ("https://a.b.cdn.example/x", b"a.b.cdn.example"),
        ("https://bücher.example/x", b"xn--bcher-kva.example"),
        ("https://xn--bcher-kva.example/x", b"xn--bcher-kva.example"),
        ("https://shop.example/a@b?c=d@e", b"shop.example"),
    ],
)
def test_what_is_on_the_list_may_be_asked(url, host):
    assert host == SHOP.check(url).raw_host


def test_everybody_public_may_be_asked_where_it_says_so_and_nobody_else():
    anybody = Policy(purpose="pages", hosts={"*"})

    anybody.check("https://anybody.example/")
    anybody.check("https://8.8.8.8/")
    for url in ("https://10.0.0.1/", "https://[fd00::1]/", "https://user@anybody.example/"):
        with pytest.raises(Blocked):
            anybody.check(url)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://127.0.0.1:9000", "127.0.0.1", 9000),
        ("https://[0:0:0:0:0:0:0:1]/x", "::1", 443),
        ("http://Worker.internal", "worker.internal", 80),
    ],
)
def test_an_address_the_operator_has_set_is_a_policy_of_its_own(url, host, port):
    policy = Policy.toward("worker", url, private=True)

    assert [{host}, {port}, {host}] == [policy.hosts, policy.ports, policy.private]
    policy.check(url)
    if host != "worker.internal":
        with pytest.raises(Blocked):
            Policy.toward("worker", url).check(url)


@pytest.mark.parametrize(
    "url", ["host/path", "https://a@b", "https://x\r\ny", "https://", "None", "ftp://host"]
)
def test_an_address_that_is_none_makes_no_policy(url):
    """§6 row 18: a storage domain with `/`, `@` or a line break."""
    with pytest.raises(BadInput):
        Policy.toward("storage", url)


@pytest.mark.parametrize(
    "rules",
    [
        {"hosts": set()},
        {"hosts": "shop.example"},
        {"hosts": {"shop.example/x"}},
        {"hosts": {"shop.example:443"}},
        {"schemes": {"ftp"}},
        {"schemes": set()},
        {"ports": {0}},
        {"ports": {70_000}},
        {"private": {"*"}},
        {"private": {"*.internal"}},
        {"deadline": 0},
        {"read": float("nan")},
        {"most_bytes": -1},
        {"redirects": 11},
        {"connections": 0},
    ],
    ids=str,
)
def test_rules_that_make_no_sense_are_refused(rules):
    with pytest.raises(BadInput):
        Policy(**{"purpose": "shop", "hosts": {"shop.example"}, **rules})


def test_equal_rules_are_one_policy():
    assert SHOP == Policy(
        purpose="shop", hosts={"shop.example", "*.CDN.example", "bücher.example"}, redirects=2
    )
    assert (
        1 == len({SHOP, Policy.toward("a", "https://b"), Policy.toward("a", "https://b")}) - 1
    )


@pytest.mark.parametrize(
    "given", [{"host": "a/b"}, {"port": 0}, {"user": "a:b"}, {"host": "127.1"}], ids=str
)
def test_a_proxy_that_is_none_is_refused(given):
    with pytest.raises(BadInput):
        Proxy(**{"host": "proxy.example", "port": 3128, **given})
