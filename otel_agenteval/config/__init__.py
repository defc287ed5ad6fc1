"""Configuration. Each option is declared once, with its type, default, range, and documentation.

The package imports pydantic only if an option is set. Start at :mod:`.root`, which defines ``Config`` with one field per section.
:mod:`.loader` loads the configuration from a file and the environment.
"""
