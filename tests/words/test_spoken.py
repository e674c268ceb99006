"""The check of pages sees a stored text that is not in the language of its page."""

import pytest

from retoma.words import Language
from tests.words.spoken import foreign

EN, PT = Language.EN, Language.PT_BR
ENGLISH = "ERROR103: the session of the worker w1 broke off (disconnected)"
PORTUGUESE = "ERROR103: a sessão do worker w1 caiu (disconnected)"


@pytest.mark.parametrize("page", ["<p>{}</p>", '<b title="{}">x</b>', "<p>Job 1 · {}\n</p>"])
def test_a_stored_text_in_another_language_is_seen(page):
    assert [PORTUGUESE] == foreign(page.format(PORTUGUESE), EN)
    assert [ENGLISH] == foreign(page.format(ENGLISH), PT)
    assert [] == foreign(page.format(ENGLISH), EN)
    assert [] == foreign(page.format(PORTUGUESE), PT)


def test_what_others_said_stands_as_it_is():
    assert [] == foreign(f"<pre>{ENGLISH}</pre><q>{ENGLISH}</q><p>Model not found</p>", PT)
