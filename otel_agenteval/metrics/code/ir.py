"""These metrics evaluate retrieval quality, based on document IDs. They ignore the case of IDs. Ranks start at 1."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Ge

from ...core.turn import Turn
from ..lib.values import fact
from ..registry import Result, metric, skip


def _key(document_id: Any) -> str:
    return str(document_id).lower()


def _relevant(turn: Turn) -> dict[str, str]:
    return {_key(document_id): document_id for document_id in fact(turn, "relevant_ids") or ()}


@metric(
    needs=("retrieved_ids",),
    uses=("relevant_ids",),
    threshold=0.7,
    aliases={"agenteval:code_recall_at_k": {}, "agenteval:RecallAtKMetric": {}, "agenteval:code_recall_at_{k}": {"k": None}},
)
def code_recall_at_k(turn: Turn, *, k: Annotated[int, Ge(1)] = 10) -> Result:
    """Share of the relevant documents that are among the first ``k`` retrieved documents.

    You provide the IDs of relevant documents as the turn's ``relevant_ids`` or in its references. Without relevant IDs, the score
    is skipped as ``missing:relevant_ids``. If retrieval spans don't contain document IDs, the metric uses IDs in tool results. A
    document that was retrieved twice counts twice toward ``k``. If nothing was retrieved, the value is 0.

    Parameters:
        k: Number of retrieved documents that the metric considers, in rank order.

    Detail: ``k``, ``relevant_count``, ``retrieved_at_k``, ``relevant_found_at_k``, and the IDs ``relevant_found`` and
    ``relevant_missed``.

    The number in the metric name ``agenteval:code_recall_at_5`` sets ``k``. You can also use other numbers.
    """
    if not (relevant := _relevant(turn)):
        return skip("missing:relevant_ids")
    first = [_key(document_id) for document_id in (turn.retrieved_ids or [])[:k]]
    top = set(first)
    found = [shown for key, shown in relevant.items() if key in top]
    detail = {
        "k": k,
        "relevant_count": len(relevant),
        "retrieved_at_k": len(first),
        "relevant_found_at_k": len(found),
        "relevant_found": found,
        "relevant_missed": [shown for key, shown in relevant.items() if key not in top],
    }
    return Result(len(found) / len(relevant), detail=detail)


@metric(
    needs=("retrieved_ids",),
    uses=("relevant_ids",),
    threshold=0.33,
    aliases={"agenteval:code_mrr": {}, "agenteval:MRRMetric": {}, "agenteval:code_mrr_at_{n}": {"max_rank": None}},
)
def code_mrr(turn: Turn, *, max_rank: Annotated[int, Ge(0)] = 0) -> Result:
    """Reciprocal rank of the first relevant document: 1 at rank 1, and 0.5 at rank 2.

    The average of this metric over several turns is the mean reciprocal rank (MRR). With the default threshold of 0.33, the metric
    passes if a relevant document is among the first three. If nothing was retrieved, the value is 0. Without relevant IDs, the
    score is skipped as ``missing:relevant_ids``.

    Parameters:
        max_rank: Last rank at which a relevant document counts. 0 means no limit.

    Detail: ``first_relevant_rank`` (0 if none was found), ``max_rank``, ``reciprocal_rank``, and ``first_relevant_doc``.

    The number in the metric name ``agenteval:code_mrr_at_5`` sets ``max_rank``. You can also use other numbers.
    """
    if not (relevant := _relevant(turn)):
        return skip("missing:relevant_ids")
    retrieved = turn.retrieved_ids or []
    considered = retrieved[:max_rank] if max_rank else retrieved
    rank = next((rank for rank, document_id in enumerate(considered, start=1) if _key(document_id) in relevant), 0)
    value = 1 / rank if rank else 0.0
    detail = {
        "first_relevant_rank": rank,
        "max_rank": max_rank,
        "reciprocal_rank": value,
        "first_relevant_doc": retrieved[rank - 1] if rank else None,
    }
    return Result(value, detail=detail)
