"""An application hands over few things, and what names nothing is refused where it is written."""

import os
import sys

import pytest

from retoma import Context, Retoma
from retoma.engine.handlers.kinds import job
from retoma.engine.rules.errors import BadInput
from retoma.manifest import APPLICATIONS, Application, application_of, load
from tests import nursery


@job
async def story(ctx: Context, n: int) -> None: ...


def test_kinds_are_given_as_functions_or_as_kinds():
    kind = story.kind  # type: ignore[attr-defined]

    assert [kind, kind] == Application(name="shop", kinds=[story, kind]).own_kinds()


@pytest.mark.parametrize("name", ["", "Shop", "1st", "a b", "a/b", "x" * 51])
def test_a_name_stands_in_addresses_and_is_plain(name):
    with pytest.raises(BadInput, match="small letters"):
        Application(name=name)


@pytest.mark.parametrize(
    "where", ["", "shop", "shop.api", "shop.api:", ":router", "a b:c", "a:b:c"]
)
def test_what_names_nothing_is_refused_before_anybody_imports_it(where):
    for field in ("router", "pages", "commands"):
        with pytest.raises(BadInput, match="names nothing"):
            Application(name="shop", **{field: where})


@pytest.mark.parametrize("address", ["", "ads", "//evil.example", "https://x", "/ads/", "/A"])
def test_a_word_of_the_menu_leads_to_a_page_of_ours(address):
    with pytest.raises(BadInput, match="leads nowhere"):
        Application(name="shop", menu=[("Orders", address)])
    assert Application(name="shop", menu=[("Orders", "/shop/orders")]).menu


def test_what_is_no_job_is_refused():
    with pytest.raises(BadInput, match="is no job"):
        Application(name="shop", kinds=[Retoma])


def test_an_address_is_imported_when_it_is_loaded():
    assert Application is load("retoma.manifest:Application")
    made = Application(name="shop", router="retoma.no_such_module:router")
    with pytest.raises(ModuleNotFoundError):
        load(made.router or "")


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A package beside ours that names an application, and one that is none."""
    (tmp_path / "shop.py").write_text(
        "import typer\n"
        "from retoma.apps import Application\n"
        "APP = Application(name='shop', commands='shop:verbs')\n"
        "verbs = typer.Typer()\n"
        "@verbs.callback()\n"
        "def shop(): ...\n"
        "@verbs.command()\n"
        "def greet(): print('come in')\n"
    )
    about = tmp_path / "shop-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: shop\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[retoma.apps]\nshop = shop:APP\nother = shop:APP\nads = shop:APP\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("shop")
def test_an_application_of_another_package_is_found_by_its_entry_point():
    assert "shop" == application_of("shop").name
    with pytest.raises(BadInput, match="no application called 'other'"):
        application_of("other")
    with pytest.raises(BadInput, match=r"one of ads, .*shop"):
        application_of("shops")


@pytest.mark.usefixtures("shop")
def test_nobody_takes_the_name_of_an_application_of_ours():
    assert load(APPLICATIONS["ads"]) is application_of("ads")


@pytest.mark.usefixtures("shop")
def test_its_verbs_are_verbs_of_the_command_line(tmp_path):
    done = nursery.run(
        [sys.executable, "-m", "retoma", "shop", "greet"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )

    assert (0, "come in\n") == (done.returncode, done.stdout), done.stderr
