"""The pipeline and its state: receives spans, composes turns, evaluates them, plans judge calls, and emits scores.

Modules here may import all lower subpackages, but no third-party package.
Start at :mod:`.builder` for the parts, then :mod:`.pipeline` for the steps and :mod:`.engine` for the life cycle.
"""
