"""One chain with its state: spans are received, turns composed, evaluated, planned for judges, and emitted.

May import everything below it; of third parties, the OpenTelemetry API, for the global providers.
Start at :mod:`.pipeline`, the chain and nothing else; :mod:`.engine` is its life.
"""
