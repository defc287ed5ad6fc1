"""One chain with its state: spans are received, turns composed, evaluated, planned for judges, and emitted.

May import everything below it, and no third-party package.
Start at :mod:`.pipeline`, the chain and nothing else; :mod:`.engine` is its life.
"""
