"""Catalog of computed metrics, judged metrics, and metrics based on embeddings.

To add a metric, write a function with a docstring in the module of its metric family, and decorate it with ``@metric``. The
generated ``catalog_index.json`` lists the built-in metrics, so that a process imports only the modules it uses. Modules in this
package may import :mod:`~otel_agenteval.core`, :mod:`~otel_agenteval.detectors`, and :mod:`~otel_agenteval.media`, but not
OpenTelemetry, because metrics receive only turns. Start reading at :mod:`.registry`. :mod:`.bound_metric` evaluates turns.
"""
