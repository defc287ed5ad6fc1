"""Detect answers that decline the request as a whole.

The decision combines evidence from the whole answer, not a single phrase. Lexicons in 28 languages assign words to classes, such
as negation, speaker, rule, result, failure or missing data. The evidence is the classes in each sentence, the request, tool
calls, and the answer's length and numbers. Its weights are the same for all languages (``scripts/refusal_weights.py`` fits them).

If the weighted sum is close to zero, a small text model decides. Quotations are ignored. Answers with code, tables or many numbers
aren't refusals.
"""

from .answers import Declined, refusal_in

__all__ = ["Declined", "refusal_in"]
