"""The configuration. Each option is declared once, with its type, default, range, documentation, and environment variable.

Modules in this folder may import :mod:`~otel_agenteval.core` and PyYAML. pydantic is imported only if an option is set. Start at
:mod:`.root`: ``Config`` has one field per section. :mod:`.loader` loads it from a file and the environment.
"""
