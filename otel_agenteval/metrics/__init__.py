"""The catalogue: one function is one metric, computed (:mod:`.code`), judged (:mod:`.llm`) or compared by embeddings (:mod:`.embed`).

To add one, write a function in the module of its family, decorate it with ``@metric`` and give it a docstring; nothing else has to be
edited. :mod:`.catalog_index`, which is generated, says what they declare to whoever has not imported them. May import :mod:`~otel_agenteval.core`; nothing of OpenTelemetry: a metric sees turns and nothing else.
Start at :mod:`.registry`; :mod:`.bound_metric` evaluates a turn.
"""
