"""How deep a page is, whatever it is dressed up as: counted to the safe side, in a time that grows with it."""

import pytest

from retoma.markup import DEEP, depth_of, too_hard


@pytest.mark.parametrize(
    "again",
    [
        "<div>",
        "<DIV class=x>",
        "<div></b>",
        "<div><!--</div>-->",
        "<div><!--</div>--!>",
        "<div title='</div>'>",
        '<div title = "</div>">',
        "<div><script>'</div>'</script>",
        "<div><textarea></div></textarea>",
        "<script><!--</script><div>-->",
        '<p "><div>">',
        "<!--><div>-->",
        "<div><?</div>",
        "<div><table></div></table>",
        "<div><select></div></select>",
        "<svg><style><g>",
        "<svg><g><![CDATA[</g>]]>",
    ],
)
def test_what_is_never_ended_is_deep_however_it_looks(again):
    assert too_hard(again * 2_000)
    assert not too_hard(again * 100)


def test_many_elements_beside_each_other_are_not_deep():
    row = "<tr><td>1<td><b>2</b><br><img src=x><script>if (a<b) '</div>'</script></tr>"

    assert 3 >= depth_of(f"<table>{row * 5_000}</table>")
    assert not too_hard(f"<table>{row * 5_000}</table>")
    assert DEEP < 5_000


@pytest.mark.parametrize("one", ["a{n} ", 'a{n}="x y" ', "a{n}='>' ", "a{n}/", 'a{n} = "<b>"'])
def test_a_tag_with_many_attributes_is_too_hard_however_they_are_written(one):
    """Lexbor compares each with all before it: 2 MiB of them take a minute and a half."""
    for end in ("<p {}>", "</p {}>", "<p {}"):
        assert too_hard(end.format("".join(one.format(n=n) for n in range(3_001))))
        assert not too_hard(end.format("".join(one.format(n=n) for n in range(500))))
    assert not too_hard(f'<p class="{"a " * 100_000}">' * 10)


@pytest.mark.parametrize("again", ["<", "<!--", "<script>", '<a b="', "<a b='", "<a =", "<a/"])
def test_no_page_takes_the_square_of_its_size(again):
    """A quarter of a million of each: the square of it would outlast any run of tests."""
    too_hard(again * 250_000)
