"""Whether the output is what a machine can read. JSON is strict RFC 8259; a fenced Markdown block is no JSON document."""

from __future__ import annotations

from .. import jsonio
from ..model import Turn
from ..registry import Result, metric, skip
from ._schema import Schema, violations

SIZE_LIMIT = 1 << 20
"""Bytes of output that are parsed; longer ones are skipped with ``too_long``."""


def _too_long(text: str) -> bool:
    if text.isascii() or len(text) > SIZE_LIMIT:
        return len(text) > SIZE_LIMIT
    return len(text.encode("utf-8", "surrogatepass")) > SIZE_LIMIT


@metric(needs=("output",), boolean=True, aliases=("trusys:is-json", "hpd:JsonValidityEvaluator"))
def code_is_json(turn: Turn, *, schema: Schema | None = None) -> Result:
    """Whether the whole output is one JSON document, optionally of a given schema.

    Any JSON value counts, not only objects; white space around it is allowed. Comments, trailing commas, single quotes,
    ``NaN`` and fenced Markdown blocks are not JSON. Of duplicate keys the last wins. An empty output is not JSON. An output
    over 1 MiB is skipped with ``too_long``.

    Parameters:
        schema: JSON Schema that the value must also meet; needs the extra ``[structured]``. Its draft is read from
            ``$schema`` (default 2020-12). References to other documents are refused, nothing is fetched; a schema that is
            not valid is an error.

    Detail: ``violations`` ``[{path, message}]``, at most ten, when the document is JSON but not of the schema.

    Sources: Trusys is-json, HPD JsonValidityEvaluator.
    """
    output = turn.output or ""
    if _too_long(output):
        return skip("too_long")
    try:
        value = jsonio.loads(output)
    except ValueError:
        return Result(False)
    if schema is None:
        return Result(True)
    found = violations(schema, value, feature="code_is_json with a schema")
    return Result(not found, detail={"violations": found} if found else None)
