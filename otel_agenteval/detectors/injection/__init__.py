"""Detect instructions to the agent in text from other sources, known as prompt injection.

:func:`~.normalise.is_harmless` rules out most texts. For the others, look-alike characters, invisible characters and encodings
are removed, because a model reads through them too. Quotations don't count. Each remaining sentence is scored together with its
neighbors, by the reader that it addresses and by its demand: to ignore instructions, take a role, hide or send something, or give
a verdict.
"""

from .normalise import is_harmless
from .orders import markers_in

__all__ = ["is_harmless", "markers_in"]
