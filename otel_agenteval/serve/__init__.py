"""The sidecar: OTLP in, the same engine as in a process, scores out.

    Service        service.py      builds the engine, opens the doors, drains them
    doors          grpc_door.py, http_door.py over http_server.py: transports, each exactly as OTLP says
    Intake         intake.py       what is admitted, how it is read, and where it goes
    Journal        journal.py      requests that outlive a crash

Both doors run on one asyncio loop and know nothing of spans; requests are unpacked and told apart on a few threads.
"""
