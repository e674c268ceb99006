"""A shell that asks what may follow is told, of all verbs: none of them is built before it is wanted."""

import pytest


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("retoma se", {"serve", "secrets", "settings"}),
        ("retoma jobs l", {"list", "logs"}),
        ("retoma demo --f", {"--fast"}),
        ("retoma nothing-of-ours", set()),
    ],
)
def test_what_may_follow_is_offered(monkeypatch, verb, typed, offered):
    monkeypatch.setenv("_RETOMA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))

    said = verb()  # a shell asks with nothing but its environment

    assert 0 == said.code, said.err
    assert offered == {*said.out.split()}


@pytest.fixture
def named_shell(monkeypatch):
    """The shell is named, not looked for among the processes that started these tests."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")


@pytest.mark.usefixtures("named_shell")
@pytest.mark.parametrize(
    ("shell", "asks"),
    [("bash", "COMP_WORDS"), ("zsh", "compdef"), ("fish", "complete --command retoma")],
)
def test_a_shell_is_given_what_it_needs_to_ask(verb, shell, asks):
    said = verb("--show-completion", shell)

    assert 0 == said.code, said.err
    assert "_RETOMA_COMPLETE" in said.out
    assert asks in said.out


@pytest.mark.usefixtures("named_shell")
def test_it_is_installed_for_who_asks(tmp_path, monkeypatch, verb):
    monkeypatch.setenv("HOME", str(tmp_path))

    said = verb("--install-completion", "bash")

    assert 0 == said.code, said.err
    written = tmp_path / ".bash_completions" / "retoma.sh"
    assert "_RETOMA_COMPLETE" in written.read_text()
    assert str(written) in (tmp_path / ".bashrc").read_text()
