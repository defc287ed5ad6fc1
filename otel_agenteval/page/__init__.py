"""The page: turns, their scores and why, to look at, and the API behind it.

:mod:`.api` answers requests, whatever server brings them; :mod:`.routes` is the table of what can be asked, of which :mod:`.openapi` makes the document;
``static`` is what a browser gets. A store is read through :mod:`otel_agenteval.outlets.sqlite.views`, and comparisons are those of the command line. May import
everything below it and no HTTP. Start at :class:`.api.Api`.
"""
