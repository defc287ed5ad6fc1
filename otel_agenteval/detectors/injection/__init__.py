"""Detect instructions to the agent in text from other sources, known as prompt injection.

:func:`~.orders.markers_in` rules out most texts with a small model that recognizes orders to agents. In other texts, look-alike
characters, invisible characters and encodings are removed, because a language model reads through them too. Quotations don't
count. The model then rates each passage, together with other evidence: whether the text addresses a machine, is hidden, or is
about attacks.
"""

from .orders import Marker, is_obeyed, markers_in

__all__ = ["Marker", "is_obeyed", "markers_in"]
