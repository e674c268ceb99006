"""How much memory, as people write it."""

import pytest

from retoma import BadInput
from retoma.engine.rules.size import size


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (512, 512),
        ("512B", 512),
        ("512MB", 512_000_000),
        ("2GiB", 2 * 2**30),
        ("1.5 kb", 1_500),
        (" 64mib ", 64 * 2**20),
    ],
)
def test_a_size_is_told_in_bytes(written, meant):
    assert meant == size(written)


@pytest.mark.parametrize("nonsense", ["", "512", "MB", "-1MB", "1TB", "1 2MB", None, True, 0.5])
def test_what_is_no_size_is_refused(nonsense):
    with pytest.raises(BadInput, match="is no size: write 512MB"):
        size(nonsense)
