"""Orders to the agent in text that it did not write.

:func:`~.normalise.is_harmless` rules most texts out. The others are read as a model would read them (without look-alikes, invisible characters and
encodings), quotations are set aside, and each sentence is weighed with its neighbours: what it wants (set instructions aside, take a role,
hide something, send something away, give a verdict) and whom it addresses.
"""

from .normalise import is_harmless
from .orders import markers_in

__all__ = ["is_harmless", "markers_in"]
