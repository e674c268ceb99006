"""Failures that a person would call the same have the same fingerprint, and others have not."""

import pytest

from retoma.engine.rules.fingerprint import fingerprint, shape


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("quote 42: SerpAPI answered 429", "quote 7: SerpAPI answered 429"),
        ("no file 'a.pdf' here", "no file 'b c.pdf' here"),
        ('no file "a.pdf" here', 'no file "" here'),
        ("GET https://a.example/x?y=1 timed out", "GET https://b.example/ timed out"),
        (
            "job 5f0c8e1e-9d0b-4f7e-8a57-0242ac120002 is gone",
            "job 00000000-0000-4000-8000-000000000000 is gone",
        ),
        ("after 1.5 s", "after 20 s"),
        ("a  b\n c", "a b c"),
    ],
)
def test_what_differs_from_job_to_job_is_left_out(one, other):
    assert fingerprint("x", one) == fingerprint("x", other)


def test_other_codes_and_other_words_are_another_failure():
    assert fingerprint("A", "timed out") != fingerprint("B", "timed out")
    assert fingerprint("A", "timed out") != fingerprint("A", "refused")
    assert fingerprint(None, "") == fingerprint("", "")


def test_a_shape_is_short_and_readable():
    assert "quote #: the shop # said #" == shape("quote 42: the shop 'x' said 429")
    assert 300 == len(shape("word " * 1000))
