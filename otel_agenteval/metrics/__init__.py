"""The catalogue: one function is one metric, one module is one family.

To add a metric, write a function in the family module it belongs to, decorate it with ``@metric`` and give it a
docstring; nothing else has to be edited. Helpers that families share stand in modules whose name begins with ``_``.
"""
