"""The command line: one module per command.

May import everything.
Start at :mod:`.main`.
"""
