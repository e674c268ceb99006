"""No file names a package registry or a path of one machine, and a lock holds names and hashes only."""

import re

import pytest

from tests.house.files import ROOT, kept_files, text_of

REGISTRY = re.compile(
    r"pypi[.]org|pythonhosted[.]org|npmjs[.](?:org|com)|yarnpkg[.]com|/[s]imple/|[a]rtifactory|jfrog[.]io|"
    r"pkg[.]dev/|[g]emfury|(?:index|extra-index|find-links|registry)(?:-url)?\s*=\s*\S*(?:://|/)",
    re.IGNORECASE,
)
MACHINE_PATH = re.compile(
    r"(?<![\w.*])/(?:[r]oot|work|home/\w+|Users/\w+|opt/\w+)/|/tmp/[a-z0-9]"
)
LOCK = re.compile(r"^(?:requirements/.*\.txt|.*\.lock|.*-lock\.(?:json|yaml))$")
# An option line in a lock says where to look: that is for whoever installs to say.
LOCK_OPTION = re.compile(r"^\s*(?:--(?!hash=)|-[a-z])", re.MULTILINE)


def leaks(place: str, text: str) -> list[str]:
    found = [f"{place}: registry {match[0]!r}" for match in REGISTRY.finditer(text)]
    found += [
        f"{place}: path of a machine {match[0]!r}" for match in MACHINE_PATH.finditer(text)
    ]
    if LOCK.match(place):
        found += [f"{place}: an address in a lock"] * text.count("://")
        found += [f"{place}: an option in a lock"] * len(LOCK_OPTION.findall(text))
    return found


def test_no_file_names_a_registry_or_a_path_of_one_machine():
    found = [
        leak
        for path in kept_files()
        for leak in leaks(path.relative_to(ROOT).as_posix(), text_of(path))
    ]

    assert [] == found


def test_the_locks_are_locks():
    for lock in sorted((ROOT / "requirements").glob("*.txt")):
        text = lock.read_text()
        pinned = re.findall(r"^[\w.\-\[\]]+==", text, re.MULTILINE)

        assert pinned, lock.name
        assert len(pinned) <= text.count("--hash=sha256:"), (
            f"{lock.name}: something has no hash"
        )
        assert LOCK.match(f"requirements/{lock.name}")


@pytest.mark.parametrize(
    ("place", "planted"),
    [
        ("README.md", "pip install --index-url https://pypi" + ".org retoma"),
        ("package.json", '"registry": "https://registry.npmjs' + '.org"'),
        ("docs/tour.md", "open /" + "root/retoma/README.md"),
        ("src/retoma/settings.py", 'DEFAULT = "/' + 'home/ana/work.db"'),
        ("tests/test_x.py", 'Path("/' + 'tmp/retoma-test")'),
        ("pip.conf", "find-links" + " = wheels/cache"),
        ("requirements/dev.txt", "--find-links wheels\napsw==3.54.1.0"),
        ("requirements/dev.txt", "-i somewhere\napsw==3.54.1.0"),
        ("requirements/dev.txt", "apsw @ https" + "://example.invalid/apsw.whl"),
    ],
)
def test_a_leak_is_seen(place, planted):
    assert [] != leaks(place, planted)


def test_an_ordinary_address_is_no_leak():
    assert leaks("README.md", "See https://semver.org and `/usr/lib/postgresql`.") == []
    assert [] == leaks("requirements/dev.txt", "apsw==1 \\\n    --hash=sha256:00\n")
    assert [] == leaks("docs/api.md", "POST /api/jobs/42/retry answers 202")
