"""The web UI: pages that show turns, their scores and outcomes, and the API behind them.

:mod:`.api` answers requests of any server. :mod:`.routes` is the table of routes, and builds the OpenAPI document from it.
``static`` contains the browser's files. Stores are read through :mod:`otel_agenteval.outlets.store.views`, and
comparisons use the same code as the command line. May import lower subpackages, but no HTTP package. Start at
:class:`.api.Api`.
"""
