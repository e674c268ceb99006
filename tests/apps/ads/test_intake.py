"""What people paste is read in every usual form, and told back by the number of its line alone."""

import pytest

from retoma.apps.ads.service.intake import LONGEST, MOST, Intake, read
from retoma.engine.rules.errors import BadInput

WHOLE = {"host": "h.example.org", "port": "8080", "username": "u", "password": "p:w"}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("h.example.org:8080:u:p:w", WHOLE),
        ("u:p:w@h.example.org:8080", WHOLE),
        ("http://u:p:w@h.example.org:8080", WHOLE),
        ("h.example.org,8080,u,p:w", WHOLE),
        ("h.example.org;8080;u;p:w;;", WHOLE),
        ("username\thost\tport\tpassword\nu\th.example.org\t8080\tp:w", WHOLE),
        ("h.example.org", {"host": "h.example.org"}),
        ("h.example.org:8080", {"host": "h.example.org", "port": "8080"}),
        ('# mine\n\n"h.example.org",80', {"host": "h.example.org", "port": "80"}),
    ],
)
def test_a_proxy_in_each_usual_form(text, fields):
    [line] = read(Intake.PROXIES, text)

    assert (fields, None) == (line.fields, line.why)


def test_a_line_that_is_none_is_named_by_its_number_and_shows_nothing_of_itself():
    lines = read(Intake.PROXIES, "good\n\nCANARY@h:1\nh:1:CANARY\na,b,c,d,e,f,CANARY")

    assert [(1, False), (3, True), (4, True), (5, True)] == [
        (each.number, each.why is not None) for each in lines
    ]
    assert "CANARY" not in repr(lines)


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "x" * (LONGEST + 1), "h\n" * (MOST + 1), "h\0", "host,hots\nh,1"],
)
def test_too_much_or_nothing_is_refused(text):
    with pytest.raises(BadInput):
        read(Intake.PROXIES, text)


def test_a_mission_and_a_worker_by_their_columns():
    [mission] = read(Intake.MISSIONS, "2025-01-01,2025-01-02,video,pt en")
    [worker] = read(Intake.WORKERS, "url,name,api_key\nhttps://w,W,CANARY")

    assert {"date_start", "date_end", "media_type", "languages"} == set(mission.fields)
    assert {"url": "https://w", "name": "W", "api_key": "CANARY"} == worker.fields
