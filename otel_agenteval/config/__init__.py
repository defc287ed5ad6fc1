"""What a user may say: one declaration per option gives its type, default, range, documentation and environment variable.

May import :mod:`~otel_agenteval.core`; of third parties, pydantic with its core, where something is given, and PyYAML.
Start at :mod:`.root`: ``Config`` has one field per section, each in a module of its name; :mod:`.loader` makes it from a file and the environment.
"""
