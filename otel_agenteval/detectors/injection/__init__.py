"""Detect prompt injection: instructions to the agent in tool results and other untrusted text.

A small model rules out most texts. In the remaining texts, look-alike characters, invisible characters, and encodings are decoded,
because a language model can read them too. Quotations are ignored. Each passage then gets a score from the model and from other
evidence, such as hidden text. Start reading at :func:`~.orders.markers_in`.
"""

from .orders import Marker, is_obeyed, markers_in

__all__ = ["Marker", "is_obeyed", "markers_in"]
