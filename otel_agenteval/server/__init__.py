"""The sidecar: OTLP in over gRPC and HTTP, the same engine as in a process, scores out.

    Service        app.py          builds the engine, opens the receivers, drains them
    receivers      grpc.py, http.py over http_server.py: transports, each exactly as OTLP says
    Receiver         receiver.py     what is admitted, how it is read, and where it goes
    Journal        wal.py          requests that outlive a crash

May import :mod:`~otel_agenteval.engine` and below; of others grpc, h11 and what unpacks requests.
Start at :mod:`.app`. Both receivers run on one asyncio loop and know nothing of spans; requests are unpacked and told apart on a few threads.
"""
