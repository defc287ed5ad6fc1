"""Web UI: pages that show turns, scores, and outcomes, and the API that these pages use.

:mod:`.api` handles requests from any HTTP server. :mod:`.routes` defines the routes and creates the OpenAPI document. ``static``
contains the files for the browser. Stores are read through :mod:`otel_agenteval.outlets.store.views`. Comparisons use the same
code as the command line. Modules in this folder may import lower layers, but no HTTP package. Start reading at :class:`.api.Api`.
"""
