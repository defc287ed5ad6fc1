"""The engine receives spans, composes turns, evaluates them, plans judge calls, and emits scores.

Modules in this package may import all lower subpackages, but no third-party packages. To learn the code, read :mod:`.builder`
(components), :mod:`.pipeline` (processing steps), and :mod:`.engine` (life cycle).
"""
