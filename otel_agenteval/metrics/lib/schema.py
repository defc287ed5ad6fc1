"""Validate values against a JSON Schema, with bounded time and without network access.

Each schema is compiled once.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from ...core import jsonio
from ...core.errors import MetricError
from ...core.extras import require
from . import schema_steps

Schema = dict[str, Any] | bool
"""A JSON Schema. ``True`` allows every value, and ``False`` allows none."""

_SHOWN_VIOLATIONS = 10
_BACKTRACK_LIMIT = 100_000
_STEPS_AT_LEAST, _STEPS_PER_CHARACTER = 200_000, 10


def violations(schema: Schema, instance: Any, *, feature: str) -> list[dict[str, str]]:
    """Return the first ten violations of a schema as ``{path, message}``.

    The list is empty if ``instance`` is valid. Messages don't quote the instance. ``$schema`` chooses the draft (default:
    2020-12).

    Raises:
        MetricError: If the schema is invalid, takes too many steps for this value, or refers to another document. Other documents are never fetched.
        MissingExtra: If the package ``jsonschema_rs`` isn't installed.
    """
    written = jsonio.dumps(schema)
    validator = _validator(written, feature)
    if any(keyword in written for keyword in schema_steps.REFERENCES):
        _refuse_explosions(schema, instance)
    if validator.is_valid(instance):
        return []
    return [
        {"path": "/" + "/".join(map(str, error.instance_path)), "message": error.message}
        for error in itertools.islice(validator.iter_errors(instance), _SHOWN_VIOLATIONS)
    ]


def _refuse_explosions(schema: Schema, instance: Any) -> None:
    most = _STEPS_AT_LEAST + _STEPS_PER_CHARACTER * len(jsonio.dumps(instance))
    try:
        schema_steps.check(schema, instance, most)
    except schema_steps.TooManySteps:
        raise MetricError(
            "invalid_schema", f"invalid JSON Schema: validation of this value exceeds {most} steps; use fewer nested references"
        ) from None


@functools.lru_cache(maxsize=256)
def _validator(schema_text: str, feature: str) -> Any:
    jsonschema_rs = require("jsonschema_rs", feature=feature, extra="structured")
    try:
        return jsonschema_rs.validator_for(
            jsonio.loads(schema_text),
            retriever=_refuse,
            mask="value",
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT),
        )
    except (ValueError, TypeError) as error:
        raise MetricError("invalid_schema", f"invalid JSON Schema: {str(error).splitlines()[0]}") from None


def _refuse(uri: str) -> Any:
    raise ValueError("a schema must not refer to other documents")
