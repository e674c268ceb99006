"""What schemathesis loads beside its own checks: see `SCHEMATHESIS_HOOKS` in test_schema.py."""

import json
from typing import Any

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.web.rejections import unknown_reasons


@schemathesis.check
def what_fits_is_taken_or_refused_for_a_known_reason(
    ctx: Any, response: Any, case: Any
) -> None:
    """In the place of `positive_data_acceptance`, which knows no reasons."""
    try:
        positive_data_acceptance(ctx, response, case)
    except Failure:
        if unknown_reasons(json.loads(response.content)):
            raise
