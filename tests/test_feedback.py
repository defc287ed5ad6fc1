"""User feedback by the handle, in events and log records, and over HTTP, and its effects."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry._logs import LogRecord
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanContext, TraceFlags

import otel_agenteval as oa
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.feedback import METRIC, feedback_of, ids_of, in_event, is_feedback_record, warn_unmatched
from otel_agenteval.outlets.store.reader import StoreReader, Wanted
from otel_agenteval.server.http import as_log_records
from otel_agenteval.server.responses import Refusal
from otel_agenteval.statistics.estimates import Estimates
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.postgres import Anywhere
from tests.support.rig import Rig
from tests.support.service import Sidecar, request, turn_of

TRACE, SPAN = "0" * 31 + "1", "0" * 15 + "1"
TURN = f"{TRACE}-{SPAN}"


# --- what is said


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ({"score": 1}, 1.0),
        ({"score": True}, 1.0),
        ({"score": 4, "scale": (1, 5)}, 0.75),
        ({"score": 1, "scale": (5, 1)}, 1.0),
        ({"label": "thumbs_up"}, 1.0),
        ({"label": "👎"}, 0.0),
        ({"label": "too slow", "score": 0.5}, 0.5),
        ({"edited": "It is Paris."}, 0.0),
    ],
)
def test_what_is_given_becomes_a_score_from_0_to_1(said: dict[str, Any], score: float) -> None:
    assert feedback_of(**said).score == score


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "no rating found"),
        ({"comment": "hm"}, "no rating found"),
        ({"score": 4}, "scale 0 to 1, got 4"),
        ({"score": float("nan")}, "must be a finite number"),
        ({"score": 10**400}, "must be a finite number"),
        ({"score": 3, "scale": (0, 10**400)}, "must be two different numbers"),
        ({"score": 1, "scale": (-1.5e308, 1.5e308)}, "must be two different numbers"),
        ({"score": 1, "scale": 5}, r"the worst and the best score, got 5. .*\[1, 5\]"),
        ({"score": 1, "comment": 3}, "feedback.comment: .*got 3"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_allowed(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        feedback_of(**said)


def test_a_refusal_does_not_quote_what_somebody_wrote() -> None:
    """Refusals are logged, and must not contain what users write."""
    for said in (
        {"label": {"a": "secret"}},
        {"score": "secret"},
        {"score": 1, "comment": ["secret"]},
        {"score": 1, "scale": "secret"},
    ):
        with pytest.raises(ConfigError) as caught:
            feedback_of(**said)
        assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        ids_of("secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "attributes", "body", "score"),
    [
        ("user_feedback", {"score": 1}, None, 1.0),
        ("gen_ai.user.feedback", {"gen_ai.user.feedback.value": False}, None, 0.0),
        ("feedback", {"rating": 5}, None, 1.0),
        ("feedback", {"rating": 3, "max": 3}, None, 1.0),
        ("feedback", {"thumbs": "up"}, None, 1.0),
        ("feedback", {"score": "0.5"}, None, 0.5),
        ("thumbs_up_down", {"vote": -1}, None, 0.0),
        ("user-feedback", {"user_feedback.label": "dislike"}, None, 0.0),
        ("feedback", {}, {"score": 1}, 1.0),
        ("gen_ai.evaluation.user_feedback", {"gen_ai.evaluation.score": 1.0}, None, 1.0),
        ("feedback", {"score": 3}, None, None),
    ],
)
def test_common_spellings_are_read(name: str, attributes: dict[str, Any], body: Any, score: float | None) -> None:
    assert is_feedback_record(name, attributes)
    found = in_event(name, attributes, body)
    assert (None if found is None else found.score) == score


def test_other_events_are_no_feedback() -> None:
    for name in ("message", "gen_ai.user.message", "gen_ai.choice", "exception", "feedback_loop", "agent.handoff", ""):
        assert not is_feedback_record(name, {})
    said = {semconv.EVALUATION_NAME: "user_feedback", semconv.SCORE_VALUE: 1.0}
    assert is_feedback_record(semconv.EVENT, said)
    assert not is_feedback_record(semconv.EVENT, {**said, semconv.RESULT_ID: "x"}), "it is ours"
    assert not is_feedback_record(semconv.EVENT, {**said, semconv.EVALUATION_NAME: "faithfulness"})


def test_a_turn_is_named_in_all_the_ways_that_applications_know_it() -> None:
    context = SpanContext(1, 1, is_remote=False)
    assert ids_of(TURN) == ids_of(f"00-{TURN}-01") == ids_of(context) == (1, 1)
    assert ids_of(TRACE) == (1, 0)
    for wrong in ("", "x", f"{TRACE}-1", "0" * 32, None, 3):
        with pytest.raises(ConfigError, match=r"feedback\.turn_id"):
            ids_of(wrong)


# --- by the handle


def feedback_events(rig: Rig) -> list[dict[str, Any]]:
    return [dict(one.attributes) for one in rig.log_events() if one.attributes[semconv.EVALUATION_NAME] == METRIC]


def handle_of(rig: Rig) -> oa.Handle:
    return oa.instrument(tracer_provider=rig.provider)


def test_feedback_joins_its_turn_long_after_it_was_scored_and_leaves_through_every_outlet(tmp_path: Path) -> None:
    path = tmp_path / "scores.db"
    config = {
        "inline": {"metrics": ["code_latency"]},
        "outlets": {"store": {"path": str(path), "content": True, "attributes": ["gen_ai.prompt.version", "service.name"]}},
    }
    with Rig(config) as rig:
        rig.run(attributes={"gen_ai.conversation.id": "c-1", "gen_ai.prompt.version": "p1"})
        turn = rig.turn()
        with StoreReader(path) as reader:
            before = reader.turn(turn.turn_id)
        handle = handle_of(rig)
        assert handle.feedback(turn.turn_id, score=2, scale=(1, 5), comment="Write to a@example.com", label="wrong city")
        assert handle.flush(120)
        [event] = feedback_events(rig)
        assert event[semconv.SCORE_VALUE] == 0.25
        assert event[semconv.PASSED] is False
        assert event[semconv.EXPLANATION] == "Write to [EMAIL_1]"
        assert (event[semconv.TURN_ID], event[semconv.AGENT_NAME], event[semconv.CONVERSATION_ID]) == (turn.turn_id, "bot", "c-1")
        assert semconv.SAMPLE_PROBABILITY not in event
        assert rig.count("agenteval.turns").popitem()[1] == 1
        assert rig.count("agenteval.results")[METRIC, "bot", "fail"] == 1
        assert rig.count("agenteval.feedback") == {("joined",): 1}
        assert handle.why(turn.turn_id) == {"code_latency": "scored", METRIC: "scored"}
        with StoreReader(path) as reader:
            [row] = [row for row in reader.scores(turn.turn_id) if row["metric"] == METRIC]
            after = reader.turn(turn.turn_id)
            assert reader.why(turn.turn_id) == {"code_latency": "scored", METRIC: "scored"}
        assert row["detail"] == {"given": 2.0, "scale": "1 to 5", "label": "wrong city"}
        assert before is not None
        assert after["fault"]["kind"] == METRIC
        later = {name: after[name] for name in ("stored_at", "fault", "mode", "failed")}
        assert after == {**before, **later}  # nothing of the turn is lost by it


def test_any_span_of_a_turn_names_it() -> None:
    with Rig({"inline": {"metrics": ["code_latency"]}}) as rig:
        with rig.agent():
            chat = rig.start_chat("q", "a")
            chat.end()
        turn = rig.turn()
        for name in (chat.get_span_context(), turn.turn_id.partition("-")[0]):
            assert handle_of(rig).feedback(name, label="👍")
        assert [event[semconv.TURN_ID] for event in feedback_events(rig)] == [turn.turn_id] * 2


def test_two_users_have_two_scores_and_the_same_feedback_twice_is_one(tmp_path: Path) -> None:
    path = tmp_path / "scores.db"
    with Rig({"inline": {"metrics": []}, "outlets": {"store": str(path)}}) as rig:
        rig.run()
        turn, handle = rig.turn(), handle_of(rig)
        for given in ({"label": "up"}, {"label": "down"}, {"label": "up", "id": "x"}, {"label": "up", "id": "x"}):
            assert handle.feedback(turn.turn_id, **given)
        assert handle.flush(120)
        with StoreReader(path) as reader:
            assert sorted(row["value"] for row in reader.scores(turn.turn_id)) == [0.0, 1.0, 1.0]


def test_feedback_of_a_turn_that_nobody_knows_leaves_with_its_ids(clock: FakeClock) -> None:
    with Rig({"inline": {"metrics": ["code_latency"]}}, clock=clock) as rig:
        rig.run()
        assert handle_of(rig).feedback("a" * 32 + "-" + "b" * 16, label="up")
        assert handle_of(rig).feedback("c" * 32, label="up")
        assert feedback_events(rig) == []
        clock.advance(61)
        [event] = feedback_events(rig)
        assert event[semconv.TURN_ID] == "a" * 32 + "-" + "b" * 16
        assert rig.count("agenteval.feedback") == {("unmatched",): 1, ("no_turn",): 1}
        handle = handle_of(rig)
        assert handle.feedback("d" * 32 + "-" + "b" * 16, label="up")
        handle.shutdown()  # what waits leaves at the end
        assert rig.count("agenteval.feedback")[("unmatched",)] == 2
        assert not handle.feedback(TURN, label="up")


def test_store_joins_feedback_of_another_worker_by_trace(anywhere: Anywhere, clock: FakeClock) -> None:
    """The id is that of the application's own span around the agent, and another worker receives the feedback."""
    config: Any = {"inline": {"metrics": ["code_latency"]}, "outlets": {"store": anywhere()}}
    with Rig(config, clock=clock) as one, Rig(config, clock=clock) as other:
        with one.tracer.start_as_current_span("ask"):
            asked = oa.turn_id()
            one.run()
        turn = one.turn()
        assert asked != turn.turn_id
        for given in (asked, turn.turn_id):
            assert handle_of(other).feedback(given, label="down")
        other.scored()  # it waits for its turn
        clock.advance(61)
        other.scored()
        with StoreReader(config["outlets"]["store"]) as reader:
            assert [(row["turn_id"], row["metric"]) for row in reader.rows(Wanted())] == [
                (turn.turn_id, name) for name in ("code_latency", METRIC, METRIC)
            ]
            row = reader.turn(turn.turn_id)
        assert row is not None
        assert (row["agent"], row["complete"], row["failed"]) == ("bot", True, 1.0)


def test_store_does_not_join_feedback_of_ambiguous_trace(
    tmp_path: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    warn_unmatched.cache_clear()
    config: Any = {"inline": {"metrics": ["code_latency"]}, "outlets": {"store": str(tmp_path / "scores.db")}}
    with Rig(config, clock=clock) as one, Rig(config, clock=clock) as other:
        with one.tracer.start_as_current_span("ask"):
            asked = oa.turn_id()
            one.run()
            one.run()
        turns = {turn.turn_id for turn in one.turns()}
        assert len(turns) == 2
        for label in ("down", "up"):
            assert handle_of(other).feedback(asked, label=label)
        other.scored()
        clock.advance(61)
        other.scored()
        with StoreReader(tmp_path / "scores.db") as reader:
            assert {row["turn_id"] for row in reader.rows(Wanted())} == {*turns, asked}
            assert len(reader.scores(asked)) == 2
    assert len([line for line in caplog.messages if "unmatched" in line]) == 1


def test_unmatched_feedback_without_store_is_logged_once(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    warn_unmatched.cache_clear()
    with Rig({"inline": {"metrics": []}}, clock=clock) as rig:
        for label in ("down", "up"):
            assert handle_of(rig).feedback(TURN, label=label)
        rig.scored()
        clock.advance(61)
        rig.scored()
        assert rig.count("agenteval.feedback") == {("unmatched",): 2}
    assert len([line for line in caplog.messages if "unmatched" in line]) == 1


@pytest.mark.parametrize("given", [{"turn_id": "x", "label": "up"}, {"turn_id": TURN}, {"turn_id": TURN, "score": 7}])
def test_invalid_feedback_never_raises_unless_strict(given: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    with Rig({"inline": {"metrics": []}}) as rig:
        handle = handle_of(rig)
        assert not handle.feedback(**given)
        assert not handle.feedback(**given)
        with pytest.raises(ValueError, match="feedback"):
            handle.feedback(**given, strict=True)
        assert rig.count("agenteval.feedback") == {("unreadable",): 2}
    assert len([line for line in caplog.messages if "feedback" in line]) == 1


def test_each_kind_of_invalid_feedback_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with Rig({"inline": {"metrics": []}}) as rig:
        for _ in range(2):
            assert not handle_of(rig).feedback(oa.turn_id(), label="up")
            assert not handle_of(rig).feedback(TURN, score=7)
            assert not handle_of(rig).feedback(TURN, label="shrug")
    first, *others = [line for line in caplog.messages if "feedback" in line]
    assert "got None. Call oa.turn_id() inside a span" in first
    assert [line.split(":")[1].strip() for line in others] == ["feedback.score", "feedback"]


def test_turn_id_names_the_turn_of_the_current_span() -> None:
    assert oa.turn_id() is None
    with Rig({"inline": {"metrics": []}}) as rig:
        start, root = rig.tracer.start_as_current_span, {"gen_ai.operation.name": "invoke_agent"}
        with start("invoke_agent a", attributes=root), start("inner"):
            named = oa.turn_id()
        assert handle_of(rig).feedback(named, label="down")
        assert handle_of(rig).flush(120)
        assert rig.count("agenteval.feedback") == {("joined",): 1}


def test_a_handle_that_is_switched_off_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_AGENTEVAL_ENABLED", "false")
    assert oa.instrument(tracer_provider=TracerProvider(shutdown_on_exit=False)).feedback(TURN, label="up") is False


# --- in the turn's own trace


def test_an_event_in_the_turn_is_a_score_of_it() -> None:
    with Rig({"inline": {"metrics": ["code_latency"]}}) as rig:
        with rig.agent() as span:
            rig.chat("q", "a")
            span.add_event("user_feedback", {"score": 0})
            span.add_event("user_feedback", {"score": 1, "comment": "better now"})
        [scored] = rig.scored()
        [score] = [score for score in scored.scores if score.metric == METRIC]
        assert (score.value, score.explanation, score.detail["count"]) == (1.0, "better now", 2)
        assert rig.score_events("invoke_agent bot")[METRIC][semconv.SCORE_VALUE] == 1.0
        assert rig.count("agenteval.feedback") == {("in_trace",): 1}


def test_attributes_are_feedback_only_where_the_configuration_names_them() -> None:
    for named, expected in (([], []), (["app.stars"], [(0.75, False, 0.9)])):
        with Rig({"inline": {"metrics": []}, "feedback": {"attributes": named, "threshold": 0.9}}) as rig:
            rig.run(attributes={"app.stars": 4, "app.rating": 1})
            scores = [score for scored in rig.scored() for score in scored.scores]
            assert [(score.value, score.passed, score.threshold) for score in scores] == expected


def test_a_log_record_is_feedback_wherever_it_is_written() -> None:
    """The application's record is read, but not changed or sent again."""
    with Rig({"inline": {"metrics": ["code_latency"]}}) as rig:
        rig.run()
        turn = rig.turn()
        of, _, span = turn.turn_id.partition("-")
        for attributes in ({"score": 1}, {"note": "nothing that can be read"}):
            record = LogRecord(event_name="user_feedback", trace_id=int(of, 16), span_id=int(span, 16), attributes=attributes)
            rig.logger_provider.get_logger("acme.web").emit(record)
        assert [event[semconv.TURN_ID] for event in feedback_events(rig)] == [turn.turn_id]
        assert rig.count("agenteval.feedback") == {("joined",): 1, ("unreadable",): 1}
        sent = [item.log_record for item in rig._logs.get_finished_logs() if item.log_record.event_name == "user_feedback"]
        assert [dict(one.attributes or {}) for one in sent] == [{"score": 1}, {"note": "nothing that can be read"}]


def test_a_revision_keeps_what_was_said_of_the_turn(clock: FakeClock) -> None:
    with Rig({"inline": {"metrics": ["code_latency"]}}, clock=clock) as rig:
        with rig.agent() as span:
            rig.chat("q", "a")
            late = rig.start_chat("q", "b")
        clock.advance(3)
        turn = rig.turn()
        assert handle_of(rig).feedback(span.get_span_context(), label="down")
        assert rig.engine.flush(120)
        late.end()
        clock.advance(3)
        rig.engine.flush(120)
        newest = rig.scored()[-1]
        assert (newest.turn.turn_id, newest.turn.revision) == (turn.turn_id, 2)
        assert [score.value for score in newest.scores if score.metric == METRIC] == [0.0]


def test_what_logfire_records_as_feedback_joins_the_turn(clock: FakeClock) -> None:
    with Rig({"inline": {"metrics": ["code_latency"]}}, clock=clock) as rig:
        with rig.agent() as span:
            rig.chat("q", "a")
        clock.advance(3)
        turn = rig.turn()
        context = span.get_span_context()
        parent = trace.set_span_in_context(
            trace.NonRecordingSpan(SpanContext(context.trace_id, context.span_id, is_remote=True, trace_flags=TraceFlags(1)))
        )
        attributes = {"logfire.feedback.name": "user rating", "user rating": False, "logfire.feedback.comment": "no"}
        rig.provider.get_tracer("logfire.feedback").start_span("feedback: user rating", parent, attributes=attributes).end()
        clock.advance(3)
        [score] = [(one.turn.turn_id, score) for one in rig.scored() for score in one.scores if score.metric == METRIC]
        assert (score[0], score[1].value, score[1].explanation) == (turn.turn_id, 0.0, "no")


# --- in the sidecar


def post(sidecar: Sidecar, body: Any, **headers: str) -> tuple[int, Any]:
    status, _, answer = sidecar.post("/v1/feedback", json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    return status, json.loads(answer)


def said(sidecar: Sidecar) -> list[tuple[str, float | None]]:
    sidecar.turns()
    sidecar.engine.worker.flush(120)
    return [(one.turn.turn_id, score.value) for one in sidecar.kept for score in one.scores if score.metric == METRIC]


def test_the_sidecar_takes_feedback_over_http_before_and_after_its_turn() -> None:
    with Sidecar({"inline": {"metrics": ["code_latency"]}}) as sidecar:
        assert post(sidecar, {"turn_id": TURN, "score": 4, "scale": [1, 5]}) == (200, {"accepted": 1})
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        assert said(sidecar) == [(TURN, 0.75)]
        several = [
            {"trace_id": TRACE, "span_id": SPAN, "label": "down"},
            {"traceparent": f"00-{TURN}-01", "edited": "So."},
            {"trace_id": TRACE, "score": 1},
        ]
        assert post(sidecar, several) == (200, {"accepted": 3})
        assert said(sidecar)[1:] == [(TURN, 0.0), (TURN, 0.0), (TURN, 1.0)]
        assert {one.turn.agent for one in sidecar.kept if one.is_feedback} == {"bot"}


def test_logfires_feedback_joins_a_turn_in_the_sidecar_too() -> None:
    with Sidecar({"inline": {"metrics": ["code_latency"]}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        assert said(sidecar) == []
        attributes = {"logfire.feedback.name": "stars", "stars": 5}
        span = {"trace": 1, "id": 9, "parent": 2, "name": "feedback: stars", "attributes": attributes}
        late = request(span, scope="logfire.feedback")
        assert sidecar.post("/v1/traces", late)[0] == 200
        assert said(sidecar) == [(TURN, 1.0)]


def test_feedback_on_turns_without_end_takes_no_memory_without_end(clock: FakeClock) -> None:
    with Rig({"inline": {"metrics": ["code_latency"]}, "feedback": {"wait": "0"}}, clock=clock) as rig:
        rig.run()
        for number in range(1, 1_200):
            handle_of(rig).feedback(f"{number:032x}-{1:016x}", label="up")
        assert rig.engine.flush(120)
        assert len(rig.engine.pipeline.outcomes._outcomes) <= 1_000


def test_much_feedback_on_one_turn_is_all_counted(clock: FakeClock) -> None:
    with Rig({"inline": {"metrics": ["code_latency"]}}, clock=clock) as rig:
        rig.run()
        turn_id = rig.turn().turn_id
        for number in range(300):
            for _ in range(2):
                handle_of(rig).feedback(turn_id, score=number % 2, id=str(number))
        assert rig.engine.flush(120)
        assert len(feedback_events(rig)) == 300


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "valid JSON"),
        ("[]", "is empty"),
        ("3", "must be a JSON object"),
        ('{"score": 1}', "one of turn_id, traceparent, and trace_id"),
        (f'{{"turn_id": "{TURN}", "scores": 1}}', "unknown key. Did you mean score"),
        (f'[{{"turn_id": "{TURN}", "score": 1}}, {{"turn_id": "{TURN}", "score": 7}}]', r"\[1\]: feedback.score: .*got 7"),
    ],
)
def test_a_wrong_request_is_refused_with_what_is_allowed(body: str, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        as_log_records(body.encode())


def test_the_endpoint_is_guarded_as_that_of_spans() -> None:
    config = {"serve": {"token": "s3cret-token-of-the-test"}, "inline": {"metrics": []}}
    with Sidecar(config) as sidecar:
        body = {"turn_id": TURN, "score": 1}
        assert post(sidecar, body)[0] == 401
        assert post(sidecar, body, Authorization="Bearer s3cret-token-of-the-test")[0] == 200
        assert post(sidecar, {"score": 1}, Authorization="Bearer s3cret-token-of-the-test")[0] == 400
        assert sidecar.post("/v1/feedback", b"", {"Authorization": "Bearer s3cret-token-of-the-test"})[0] == 415


def test_feedback_that_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    config = {"serve": {"journal": str(tmp_path / "journal")}, "inline": {"metrics": []}}
    with Sidecar(config) as first:
        assert post(first, {"turn_id": TURN, "score": 1})[0] == 200
        copy = shutil.copytree(tmp_path / "journal", tmp_path / "copy")  # what the disk has at this moment
    with Sidecar({**config, "serve": {"journal": str(copy)}}) as second:
        assert second.post("/v1/traces", turn_of(1))[0] == 200
        assert said(second) == [(TURN, 1.0)]


def test_tenants_say_something_of_their_own_turns_only() -> None:
    tenants = [{"name": name, "token": f"token-of-{name}-123456"} for name in ("acme", "globex")]
    with Sidecar({"serve": {"tenants": tenants}, "inline": {"metrics": []}}) as sidecar:
        for name in ("acme", "globex"):
            assert sidecar.post("/v1/traces", turn_of(1), {"Authorization": f"Bearer token-of-{name}-123456"})[0] == 200
        assert post(sidecar, {"turn_id": TURN, "score": 1}, Authorization="Bearer token-of-acme-123456")[0] == 200
        assert said(sidecar) == [(f"acme:{TURN}", 1.0)]


# --- what follows


def judged(models: ScriptedModels, rate: float) -> dict[str, Any]:
    sample = {"rate": rate, "always_if": f"score.{METRIC} < 0.5"}
    return {
        "judge": {"base_url": models.url, "model": "scripted"},
        "metrics": [{"llm_relevance": {}, "sample": sample}],
        "inline": {"metrics": ["code_latency"]},
    }


def test_a_turn_that_its_user_does_not_like_is_judged(models: ScriptedModels) -> None:
    models.play({"score": 10, "reason": "No."})
    with Rig(judged(models, 0)) as rig:
        rig.run()
        turn, handle = rig.turn(), handle_of(rig)
        assert (rig.engine.why(turn.turn_id) or {})["llm_relevance"].startswith("sampled out")
        handle.feedback(turn.turn_id, label="up")
        assert rig.engine.drain(120, judges=True)
        assert not models.requests
        handle.feedback(turn.turn_id, label="down")
        assert rig.engine.drain(120, judges=True)
        handle.feedback(turn.turn_id, label="down")  # once is enough
        assert rig.engine.drain(120, judges=True)
        assert len(models.requests) == 1
        [event] = [dict(one.attributes) for one in rig.log_events() if one.attributes[semconv.EVALUATION_NAME] == "llm_relevance"]
        assert (event[semconv.SAMPLE_PROBABILITY], event[semconv.DECIDED_BY]) == (1.0, "rule")
        assert (rig.engine.why(turn.turn_id) or {})["llm_relevance"] == "scored"


def test_feedback_within_the_trace_chooses_the_turn_too(models: ScriptedModels) -> None:
    models.play({"score": 10, "reason": "No."})
    with Rig(judged(models, 0)) as rig:
        with rig.agent() as span:
            rig.chat("q", "a")
            span.add_event("thumbs_down")
        assert rig.engine.drain(120, judges=True)
        assert len(models.requests) == 1


def test_a_drawn_turn_that_a_rule_would_have_chosen_stands_for_itself_alone() -> None:
    """One in ten turns is drawn. Negative feedback always causes judging. 100 turns, 20 of them bad, half of these with feedback."""
    estimates = Estimates(3600, FakeClock())
    for number in range(100):
        bad, speaks = number % 5 == 0, number % 10 == 0
        drawn = number % 10 in (0, 1) and number % 20 in (0, 1)  # every 10th on average, of each kind
        turn_id = f"t{number}"
        if drawn:
            estimates.choose("llm_x", "bot", 0.1, "drawn", turn_id)
            estimates.add("llm_x", "bot", turn_id, turn_id, 0.0 if bad else 1.0, 0.1)
        if speaks and drawn:
            estimates.make_certain("llm_x", turn_id)
        elif speaks:
            estimates.choose("llm_x", "bot", 1.0, "rule", turn_id)
            estimates.add("llm_x", "bot", turn_id, turn_id, 0.0 if bad else 1.0, 1.0, "rule")
    found = estimates.read()["llm_x", "bot"]
    # 10 that spoke, each for itself, all bad; 5 drawn that did not, each for ten, all good.
    assert found.mean == pytest.approx(50 / 60)
