"""Evaluation of judged metrics: sampled turns, job queues, judge calls, and their budget.

After the worker has scored a turn's inline metrics, it plans the judge evaluations (:mod:`.plan`). Each judge evaluation becomes a
job, which contains the turn in ``turn.v1`` form (:mod:`.job`). Judge threads claim jobs (:mod:`.dispatcher`), call the models
(:mod:`.runner`, :mod:`.session`), and pass each score to the worker. The worker emits the score, then acknowledges the job. If the
process dies before the acknowledgment, a persistent queue redelivers the job.

Modules in this folder may import :mod:`~otel_agenteval.outlets`, lower layers, httpcore, and numpy. They import packages for the
configured queues and models on first use. Start reading at :mod:`.plan`, then :mod:`.dispatcher`.
"""
