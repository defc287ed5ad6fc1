"""Detect prompt injection: instructions to the agent in untrusted texts.

A small text model rules out most texts. The remaining texts are decoded, because language models understand look-alike characters,
invisible characters, and encodings too. Quotations are ignored. Each passage then gets a score from the text model and from other
evidence, such as hidden text. Start reading at :func:`~.orders.markers_in`.
"""

from .orders import Marker, is_obeyed, markers_in

__all__ = ["Marker", "is_obeyed", "markers_in"]
