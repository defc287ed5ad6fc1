"""Sidecar that receives OTLP over gRPC and HTTP, and evaluates it with the same engine as the span processor.

    Service        app.py             creates the engine, opens the listeners, drains them at shutdown
    transports     grpc.py, http.py   implement OTLP exactly as specified; http.py uses http_server.py
    Receiver       receiver.py        decides which requests are accepted
    Feed           feed.py            parses requests and passes their spans and log records to the engine
    Journal        wal.py             stores requests on disk, so that they survive a crash
    JournalFolder  journal_folder.py  assigns leftover journal segments to the processes of a service

This folder may import :mod:`~otel_agenteval.engine` and lower layers, h2, h11, and packages that decompress requests.
Start at :mod:`.app`. Both transports run on one asyncio loop. A few threads decompress and parse requests.
"""
