"""Files become documents: PDF, DOCX and HTML by the readers of documents, whole or not at all."""

from retoma.sandbox.documents import docx_of, pdf_of
from retoma.testing import drain
from tests.apps.embeddings.test_api import ROOT, site

FILES = f"{ROOT}/files"
WORDS = "O farol da ilha acende ao anoitecer."
HTML = f"<!doctype html><html><body><script>x</script><p>{WORDS}</p></body></html>"


async def test_a_file_is_found_by_what_it_says(database_url):
    """And the same file again is the document that is there."""
    files = {
        "a.pdf": pdf_of([[WORDS]]),
        "b.docx": docx_of([WORDS]),
        "c.html": HTML.encode(),
        "d.txt": WORDS.encode(),
    }
    async with site(database_url) as (app, those):
        for name, content in files.items():
            asked = {"collection": "livros", "name": name, "metadata": "tipo=carta"}
            made = await those["operator"].post(FILES, params=asked, content=content)
            assert (201, []) == (made.status_code, made.json()["refused"]), made.text
            again = await those["operator"].post(FILES, params=asked, content=content)
            assert (200, 1) == (again.status_code, len(again.json()["already"]))
        await drain(app)
        found = await those["viewer"].post(
            f"{ROOT}/search",
            json={"collection": "livros", "text": "farol", "metadata": {"tipo": "carta"}},
        )

    [hit] = found.json()["hits"]
    assert WORDS == hit["text"].strip()
    assert 3 == hit["duplicates"]


async def test_a_file_that_says_nothing_is_named_with_the_reason(database_url):
    async with site(database_url) as (_, those):
        for name, content, code in (
            ("x.pdf", b"%PDF-1.7 nothing", "corrupt"),
            ("x.docx", b"PK\x03\x04nothing", "corrupt"),
            ("x.jpg", b"\xff\xd8\xff\xe0", "bad_text"),
            ("empty.html", b"", "empty"),
            ("long.html", b"<html><body>" + b"palavra " * 800_000, "too_large"),
            ("words.pdf", b"only words", "wrong_extension"),
        ):
            asked = {"collection": "livros", "name": name}
            answer = await those["operator"].post(FILES, params=asked, content=content)
            [refused] = answer.json()["refused"]
            assert (200, code) == (answer.status_code, refused["code"]), name
        assert (
            403 == (await those["viewer"].post(FILES, params=asked, content=b"x")).status_code
        )
