"""Does an answer as a whole decline to do what was asked?

Evidence decides, not a phrase. Words are looked up by what they say (a negation, the speaker, a rule, a wrong, what the speaker is for, a result, a
failure, missing data ...), in 28 languages; what stands together in a sentence, what was asked, whether tools were called, the answer's length and its figures are weighed by
weights that are the same for every language (``scripts/refusal_weights.py`` fits them). Where the sum is undecided, sentences that decline by a known
pattern are a second opinion. Quotations are not read, and answers with code, tables or many figures deliver something.
"""

from .answers import Declined, refusal_in

__all__ = ["Declined", "refusal_in"]
