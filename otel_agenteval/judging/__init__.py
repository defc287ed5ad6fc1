"""Evaluation of judged metrics: sampling of turns, job queues, judge calls, and a budget for judge calls.

After the worker has scored a turn's inline metrics, it plans the judge evaluations (:mod:`.plan`). Each judge evaluation becomes a
job, which contains the turn as ``turn.v1`` JSON (:mod:`.job`). Judge threads claim jobs (:mod:`.dispatcher`), call the models
(:mod:`.runner`, :mod:`.session`), and pass each score to the worker. The worker exports the score, then acknowledges the job. If
the process dies before the acknowledgment, a persistent queue redelivers the job.

Modules in this folder may import :mod:`~otel_agenteval.outlets`, lower layers, httpcore, and numpy. They import packages for the
configured queues and models on first use. Start reading at :mod:`.plan`, then :mod:`.dispatcher`.
"""
