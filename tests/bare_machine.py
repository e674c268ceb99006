"""A machine where nobody has installed anything, made from this one, to try a clean clone on.

`python -m tests.bare_machine [--as-root] [--keep] ./run demo` clones the last commit, then runs the command there: as
a plain user that is new here, with an empty home and empty caches, on a PATH of what Debian's minimal image has plus
Python and git. Where the kernel allows namespaces, the temp folders are empty too, other people's homes and
Debian's PostgreSQL are hidden, and every process ends with the command. It prints the seconds and what was left.
"""

import argparse
import os
import pwd
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Of the packages that Debian cannot do without, what a shell script or a test may start.
REQUIRED = (
    "[ arch awk basename bash cat chgrp chmod chown cksum cmp comm cp cut date dd df "
    "diff dirname du echo egrep env expr false fgrep find flock gawk getent getopt "
    "grep gunzip gzip head hostname id install join kill ldd link ln logname ls mawk "
    "md5sum mkdir mkfifo mknod mktemp mount mountpoint mv nice nl nohup nproc numfmt "
    "od paste pathchk perl pr printenv printf pwd readlink realpath renice rm rmdir "
    "sed seq setpriv setsid sh sha256sum shuf sleep sort split stat stty su sum sync "
    "tac tail tar tee test timeout touch tr true truncate tsort tty umount uname uniq "
    "unlink unshare wc which who whoami xargs yes zcat "
)
BROUGHT = ("python3", "git")  # what the README asks for

# How this machine reaches its package registries is no luck; all else of the environment might be.
KEPT_PREFIXES = ("PIP_", "UV_", "NPM_CONFIG_")
KEPT = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)

HIDDEN = ("/root", "/home", "/usr/local", "/usr/lib/postgresql")
EMPTIED = ("/tmp", "/dev/shm")  # noqa: S108 — new ones, of the machine's own
NAMESPACES = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
USER_NAME = "retoma-bare"


def link_programs(folder: Path) -> Path:
    """Fill a folder with links to the programs of a minimal machine, to be the whole PATH."""
    folder.mkdir()
    for name in (*REQUIRED.split(), *BROUGHT):
        found = shutil.which(name, path="/usr/bin:/bin")
        if found is not None:
            (folder / name).symlink_to(found)
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class BareMachine:
    """A folder with a clean clone, an empty home and a PATH; commands run there, one after the other."""

    folder: Path
    user: int  # 0: root
    isolated: bool  # in namespaces of its own

    @property
    def clone(self) -> Path:
        return self.folder / "clone"

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in KEPT or name.startswith(KEPT_PREFIXES)
        }
        home = str(self.folder / "home")
        return kept | {"PATH": str(self.folder / "bin"), "HOME": home}

    def run(self, *command: str, capture: bool = False) -> "subprocess.CompletedProcess[str]":
        """Run a command in the clone, and wait for it."""
        return subprocess.run(
            self._isolated(command) if self.isolated else self._as_user(command),
            cwd=self.clone,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=capture,
            text=True,
            check=False,
        )

    def _isolated(self, command: tuple[str, ...]) -> list[str]:
        script = [*self._mounts(), f"cd {self.clone}", "code=0"]
        script += [f"{shlex.join(self._as_user(command))} || code=$?"]
        script += [
            f"find {' '.join(EMPTIED)} -mindepth 1 -maxdepth 1 >{self.folder}/left",
            "exit $code",
        ]
        return [*namespace_command(), "/bin/sh", "-euc", "\n".join(script)]

    def _mounts(self) -> Iterator[str]:
        for path in (path for path in (*HIDDEN, *EMPTIED) if Path(path).is_dir()):
            mode = "1777" if path in EMPTIED else "755"
            yield f"/bin/mount -t tmpfs -o mode={mode} retoma-bare {path}"
        if os.geteuid() == 0:
            yield f"/bin/mount --bind {self.folder}/passwd /etc/passwd"

    def _as_user(self, command: tuple[str, ...]) -> list[str]:
        if os.geteuid() == 0 and self.user != 0:
            become = ("--reuid", str(self.user), "--regid", str(self.user), "--clear-groups")
            return ["/usr/bin/setpriv", *become, *command]
        if os.geteuid() != 0 and self.isolated:  # root of the namespace becomes the user again
            ids = (f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}")
            return ["/usr/bin/unshare", "--user", *ids, *command]
        return list(command)

    def left_behind(self) -> list[str]:
        """Return what the last command left in the temp folders."""
        left = self.folder / "left"
        return left.read_text().splitlines() if left.exists() else []


@contextmanager
def bare_machine(*, as_root: bool = False, keep: bool = False) -> Iterator[BareMachine]:
    """Make a machine from the last commit; it goes when the block ends."""
    # Not in the temp folder: that one is hidden from the machine.
    folder = Path(tempfile.mkdtemp(prefix="retoma-bare-", dir="/var/tmp"))
    try:
        yield make_machine(folder, as_root=as_root)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def make_machine(folder: Path, *, as_root: bool) -> BareMachine:
    folder.chmod(0o755)
    link_programs(folder / "bin")
    clone = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(folder / "clone")]
    subprocess.run(clone, check=True)
    home = folder / "home"
    home.mkdir(mode=0o700)
    user = os.geteuid()
    if user == 0 and not as_root:
        user = unused_user()
        subprocess.run(["chown", "-R", f"{user}:{user}", folder / "clone", home], check=True)
    line = f"{USER_NAME}:x:{user}:{user}::{home}:/bin/sh\n" if user else ""
    (folder / "passwd").write_text(Path("/etc/passwd").read_text() + line)
    return BareMachine(folder=folder, user=user, isolated=can_isolate())


def unused_user() -> int:
    """Return a number that no user of this machine has."""
    known = {each.pw_uid for each in pwd.getpwall()}
    return next(number for number in range(20_000, 60_000) if number not in known)


def can_isolate() -> bool:
    try:
        tried = subprocess.run([*namespace_command(), "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return tried.returncode == 0


def namespace_command() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["/usr/bin/unshare", *user, *NAMESPACES]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--as-root", action="store_true", help="Stay root, in a home of its own"
    )
    parser.add_argument("--keep", action="store_true", help="Leave the folder for a look at it")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="command …")
    asked = parser.parse_args()
    with bare_machine(as_root=asked.as_root, keep=asked.keep) as machine:
        how = "in namespaces of its own" if machine.isolated else "without namespaces"
        print(f"user {machine.user}, {machine.folder}, {how}", flush=True)
        began = time.monotonic()
        code = machine.run(*asked.command).returncode
        seconds = time.monotonic() - began
        print(
            f"user {machine.user}: {shlex.join(asked.command)}: exit {code} in {seconds:.1f} s"
        )
        print("left in the temp folders:", *(machine.left_behind() or ["nothing"]))
    return code


if __name__ == "__main__":
    sys.exit(main())
