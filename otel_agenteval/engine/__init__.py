"""The engine receives spans, composes turns, evaluates them, plans judge calls, and emits scores.

Modules here may import all lower subpackages, but no third-party packages. Read :mod:`.builder` first for the components, then
:mod:`.pipeline` for the steps and :mod:`.engine` for the life cycle.
"""
