"""Play mutants: each killer is green on the tree as it is, and red on the mutant."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import close_postgres, postgres_address
from tests.mutants.catalog import MUTANTS, Mutant
from tests.mutants.edit import Stale, Tree
from tests.mutants.killers import ByTest, ByUniverses, Finding, Killer, play_tests


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a mutant and one of its killers; `wrong`: why that does not count as killed."""

    mutant: Mutant
    killer: Killer
    finding: Finding | None
    wrong: str | None

    def __str__(self) -> str:
        """A row of the table."""
        found = self.finding
        by = self.killer.name if found is None or self.wrong else found.by
        took = f"{found.seconds:.1f} | {found.cpu:.1f}" if found else "|"
        wrong = f" **{self.wrong}**" if self.wrong else ""
        return f"| {self.mutant.name} | {self.mutant.breaks} | `{by}`{wrong} | {took} |"


HEAD = "| mutant | what it breaks | killed by | s | s of CPU |\n|---|---|---|---|---|"


@dataclass(slots=True)
class Laboratory:
    """A copy of the source in which mutants are made, one at a time. `options`: of pytest."""

    tree: Tree
    options: tuple[str, ...] = ()
    _clean: dict[Killer, Finding] = field(default_factory=dict)

    def play(self, mutants: Sequence[Mutant]) -> Iterator[Verdict]:
        """Try each mutant with each of its killers."""
        self._try_clean([killer for mutant in mutants for killer in mutant.killers])
        for mutant in mutants:
            for killer in mutant.killers:
                yield self._played(mutant, killer)

    def _try_clean(self, killers: Sequence[Killer]) -> None:
        """Run all tests on the tree as it is, in one process."""
        new = [each for each in dict.fromkeys(killers) if each not in self._clean]
        tests = [each for each in new if isinstance(each, ByTest)]
        for test, finding in play_tests(tests, self.tree.folder, *self.options).items():
            self._clean[test] = finding

    def _played(self, mutant: Mutant, killer: Killer) -> Verdict:
        if not isinstance(killer, ByUniverses):
            clean = self._on_clean(killer)
            if not clean.green:
                return Verdict(mutant, killer, clean, f"red without the mutant: {clean.told}")
        try:
            with self.tree.changed(mutant.edits):
                found = killer.play(self.tree.folder, *self.options)
        except Stale as error:
            return Verdict(mutant, killer, None, f"does not apply: {error}")
        if found.green:
            return Verdict(mutant, killer, found, "survived")
        if not found.red:
            return Verdict(mutant, killer, found, f"red, but not as it should: {found.told}")
        if isinstance(killer, ByUniverses):
            clean = self._on_clean(killer.alone(found.seed))
            if not clean.green:
                return Verdict(mutant, killer, clean, f"red without the mutant: {clean.told}")
        return Verdict(mutant, killer, found, None)

    def _on_clean(self, killer: Killer) -> Finding:
        if killer not in self._clean:
            self._clean[killer] = killer.play(self.tree.folder, *self.options)
        return self._clean[killer]


@contextmanager
def laboratory(*options: str) -> Iterator[Laboratory]:
    with tempfile.TemporaryDirectory(prefix="retoma-mutants-") as folder:
        yield Laboratory(Tree(Path(folder)), options)


def chosen(names: Sequence[str]) -> list[Mutant]:
    """The mutants of these names, or all."""
    known = {each.name: each for each in MUTANTS}
    unknown = sorted({*names} - {*known})
    if unknown:
        raise SystemExit(
            f"there is no mutant {', '.join(unknown)}: there are {', '.join(known)}"
        )
    return [known[name] for name in names] if names else list(MUTANTS)


def prove(names: Sequence[str]) -> int:
    """Play mutants and print a row for each killer; the exit code of `./run prove --mutants`."""
    mutants = chosen(names)
    wrong = 0
    with ExitStack() as stack:
        postgres_address()  # one server for all that is played
        stack.callback(close_postgres)
        lab = stack.enter_context(laboratory())
        print(f"{len(mutants)} mutants\n{HEAD}", flush=True)
        for verdict in lab.play(mutants):
            print(verdict, flush=True)
            wrong += verdict.wrong is not None
    print(f"{len(mutants)} mutants, {wrong} of their killers did not kill", file=sys.stderr)
    return int(wrong > 0)
