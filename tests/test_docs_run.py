"""Every code block of the docs, run as a reader would: page by page, in an empty folder, on the databases it is for."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests import nursery
from tests.house.files import ROOT

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+\.py)\n")
RUN = ("python", "sh", "console", "toml")
READ = ("text", "mermaid")  # for people, not for machines
ADDRESS = "RETOMA_DATABASE_URL"
BROKER = "CELERY_BROKER_URL"
PATIENCE = 300  # seconds for one block: a bound for what hangs, not for a machine that is busy
PLAIN = ("first-job.md",)  # every process of it starts from nothing, as a reader's does


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


def pages() -> list[Path]:
    return [
        page
        for page in sorted(DOCS.rglob("*.md"))
        if any(language in RUN for language, _ in blocks(page))
    ]


def databases(page: Path) -> list[str]:
    """A page that lets its reader choose is run on both."""
    if page.name == "postgresql.md":
        return ["postgres"]
    return ["sqlite", "postgres"] if ADDRESS in page.read_text() else ["sqlite"]


def marks(page: Path, database: str) -> list[pytest.MarkDecorator]:
    """Pages are for readers, who begin with SQLite; the engine under them is tested on both."""
    both = (*("first-job.md", "many-machines.md"), "postgresql.md")
    late = database == "postgres" and page.name not in both
    return [pytest.mark.soak] if late else []


CASES = [
    pytest.param(
        page,
        database,
        id=f"{page.relative_to(DOCS).as_posix()}-{database}",
        marks=marks(page, database),
    )
    for page in pages()
    for database in databases(page)
]


@pytest.mark.timeout(3 * PATIENCE)
@pytest.mark.parametrize(("page", "database"), CASES)
def test_every_block_of_a_page_works(page, database, tmp_path, request):
    reader = Reader(tmp_path, plain=page.name in PLAIN)
    if database == "postgres":
        reader.environment[ADDRESS] = request.getfixturevalue("postgres_url")
    if BROKER in page.read_text():
        reader.environment[BROKER] = request.getfixturevalue("redis_url")

    for language, text in blocks(page):
        reader.meet(language, text)

    assert reader.ran


def test_every_block_says_what_it_is():
    for page in sorted(DOCS.rglob("*.md")):
        for language, text in blocks(page):
            assert language in (*RUN, *READ), f"{page.name}: ```{language}\n{text[:80]}"


def test_the_pages_that_must_be_there_are_run():
    names = {page.relative_to(DOCS).as_posix() for page in pages()}

    ideas = ("leases", "epochs", "steps", "generations", "pools", "remote-jobs")
    concepts = {f"concepts/{name}.md" for name in ideas}
    names_of_howtos = (
        *("first-job", "tests", "postgresql"),
        *("remote-jobs", "pools-rates-breakers", "call-services", "celery", "many-machines"),
        *("own-application", "matches-site", "dead-letters", "upgrade", "backup", "deploy"),
    )
    howto = {f"howto/{name}.md" for name in names_of_howtos}
    assert concepts | howto <= names


def test_an_application_of_ones_own_is_one_short_file():
    shown = [text for _, text in blocks(DOCS / "howto" / "own-application.md")]

    [file] = [text for text in shown if text.startswith("# interviews.py")]
    assert len(file.splitlines()) <= 60


def test_a_league_and_a_site_of_ones_own_are_one_short_file():
    shown = [text for _, text in blocks(DOCS / "howto" / "matches-site.md")]

    [file] = [text for text in shown if text.startswith("# varzea.py")]
    assert len(file.splitlines()) <= 50


def test_an_embedding_provider_of_ones_own_is_one_short_file():
    shown = [text for _, text in blocks(DOCS / "howto" / "embedding-provider.md")]

    [file] = [text for text in shown if text.startswith("# letters.py")]
    assert len(file.splitlines()) <= 50


def test_the_example_is_what_its_page_shows():
    shown = [text for language, text in blocks(DOCS / "howto" / "celery.md")]

    for path in sorted((ROOT / "examples" / "celery").glob("*.py")):
        assert path.read_text() in shown, path.name


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "assert 1 == 2\n"),
        ("sh", "false\n"),
        ("sh", "retoma jobs nonsense\n"),
        ("console", "$ echo one\ntwo\n"),
    ],
)
def test_a_block_that_does_not_work_is_seen(tmp_path, language, text):
    with pytest.raises(AssertionError):
        Reader(tmp_path).meet(language, text)


class Reader:
    """Does what a page says, in a folder of its own."""

    def __init__(self, folder: Path, *, plain: bool = False) -> None:
        """`plain`: no process is born ready."""
        programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
        if not plain:
            ready = folder / ".ready"
            ready.mkdir()
            nursery.stand_in(ready, "retoma")
            programs.insert(0, str(ready))
        path = os.pathsep.join(programs)
        self.environment = {"PATH": path, "HOME": str(folder), "NO_COLOR": "1"}
        # A reader's pytest has no plugins of ours. One of them is imported last of all, which Python
        # 3.11.7 now and then cannot where nobody has compiled it before.
        self.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self.ran = 0
        self._folder = folder
        self._python_run = subprocess.run if plain else nursery.run

    def meet(self, language: str, text: str) -> None:
        if language == "python":
            self._python(text)
        elif language == "sh":
            self._run(["sh", "-e", "-c", text])
        elif language == "console":
            self._console(text)
        elif language == "toml":
            self._install(text)

    def _python(self, text: str) -> None:
        """A block that begins with the name of a file is that file; any other is run."""
        named = FILE.match(text)
        if named is not None:
            (self._folder / named[1]).write_text(text)
            return
        script = self._folder / "block.py"
        script.write_text(text)
        self._run([sys.executable, script.name], self._python_run)

    def _install(self, text: str) -> None:
        """What `pip install -e .` would leave of it: its name, its entry points, and this folder."""
        told = tomllib.loads(text)["project"]
        about = self._folder / f"{told['name']}-{told['version']}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Name: {told['name']}\nVersion: {told['version']}\n")
        groups = [
            "\n".join([f"[{group}]", *(f"{name} = {where}" for name, where in named.items())])
            for group, named in told["entry-points"].items()
        ]
        (about / "entry_points.txt").write_text("\n".join(groups))
        self.environment["PYTHONPATH"] = str(self._folder)

    def _console(self, text: str) -> None:
        shown = "".join(
            f"$ {command}\n{self._run(['sh', '-c', command])}"
            for command in re.findall(r"^\$ (.*)$", text, re.MULTILINE)
        )
        assert text == shown

    def _run(self, command: list[str], run: Any = subprocess.run) -> str:
        done = run(
            command,
            cwd=self._folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
        self.ran += 1
        return str(done.stdout)
