"""Words that everybody uses: the turn, the score, names on the wire, self-metrics, errors, and small tools that know nothing of agents.

May import nothing of ours; of third parties, orjson and pydantic-core, and on first use httpx and the packages of its extras.
Start at :mod:`.turn` and :mod:`.score`: everything else makes one of them or carries it somewhere.
"""
