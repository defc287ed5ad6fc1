"""The sidecar: OTLP in over gRPC and HTTP, the same engine as in a process, scores out.

    Service        app.py          builds the engine, opens the transports, drains them
    transports     grpc.py, http.py on http_server.py: each exactly as OTLP specifies it
    Receiver       receiver.py     decides which requests are accepted
    Feed           feed.py         reads requests, and gives the engine what is in them
    Journal        wal.py          keeps requests on disk, so that they outlive a crash
    JournalFolder  journal_folder.py  shares what is left of a journal out among the processes of a service

May import :mod:`~otel_agenteval.engine` and below; of third parties, grpc, h11 and what unpacks requests.
Start at :mod:`.app`. Both transports run on one asyncio loop and know nothing of spans; requests are unpacked and read on a few threads.
"""
