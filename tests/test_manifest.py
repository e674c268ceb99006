"""An application hands over few things, and what names nothing is refused where it is written."""

import pytest

from retoma import Context, Retoma
from retoma.engine.errors import BadInput
from retoma.engine.kind import job
from retoma.manifest import Application, load


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
