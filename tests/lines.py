"""What another process is still writing, read line by line."""

from pathlib import Path


def whole_lines(log: Path) -> list[str]:
    """A line is there when its end is: even one write of it may be seen in two parts."""
    text = log.read_text(encoding="utf-8", errors="replace")
    return text[: text.rfind("\n") + 1].splitlines()
