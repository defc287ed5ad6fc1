"""Sidecar that receives OTLP over gRPC and HTTP, and evaluates the data with the same engine as the span processor.

``Service`` in :mod:`.app` creates the engine and opens the listeners. :mod:`.grpc` and :mod:`.http` implement OTLP as specified.
``Receiver`` in :mod:`.receiver` decides which requests are accepted. ``Feed`` in :mod:`.feed` parses requests and passes them to
the engine. ``Journal`` in :mod:`.wal` stores requests on disk, so that they survive a crash. ``JournalFolder`` in
:mod:`.journal_folder` assigns leftover journal segments to the processes of a service.

Modules in this folder may import :mod:`~otel_agenteval.engine`, :mod:`~otel_agenteval.page`, and lower layers. Start reading at
:mod:`.app`. gRPC and HTTP run on one asyncio loop. A few threads decompress and parse requests.
"""
