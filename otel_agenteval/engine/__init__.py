"""The engine receives spans, composes and evaluates turns, plans judge calls, and emits scores.

Modules in this package may import all lower subpackages, but not third-party packages. To learn the code, read :mod:`.builder`
(components), :mod:`.pipeline` (processing steps), and :mod:`.engine` (life cycle).
"""
