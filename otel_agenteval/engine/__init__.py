"""The pipeline and its state: receives spans, composes turns, evaluates them, plans judge calls, and emits scores.

May import everything below it, and no third-party package.
Start at :mod:`.pipeline` for the steps, then :mod:`.engine` for the life cycle.
"""
