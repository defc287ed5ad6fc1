"""More applications without any model, as tempting as they come: for measuring, not for tuning by.

    python tests/recording/ordinary_held_out.py FOLDER

As ``ordinary_apps.py``. Nothing here was answered by a model: people, rules, machines and databases did it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app_telemetry import CLIENT, CONSUMER, INTERNAL, PRODUCER, SERVER, App, js, record

APPS: dict = {}


def app(run):
    """Register an application by its function's name."""
    APPS[run.__name__.replace("_", "-")] = run
    return run


TALK = [{"role": "user", "content": "Do you have this coat in green?"}, {"role": "assistant", "content": "We do, in sizes S and M."}]


@app
def shop_assistants(w: App) -> None:
    """People behind a counter, called assistants, who write to customers, called users."""
    with w.span("chat", SERVER, input=TALK[:1], output=TALK[1], conversation_id="shop-31", **{"session.id": "shop-31", "user.id": "u-8", "assistant.name": "Margit", "messages": TALK}):
        w.leaf("stock.lookup", query="coat green", **{"stock.result": [{"sku": "c-1", "size": "S"}, {"sku": "c-2", "size": "M"}]})
        w.log({"role": "assistant", "content": TALK[1]["content"], "author": "Margit"}, event="chat.message")


@app
def vending_tokens(w: App) -> None:
    usage = {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4}
    with w.span("completion", usage=usage, model="VM-300", provider="coinworks", **{"request.model": "VM-300", "response.model": "VM-300/b", "usage.input_tokens": 3, "usage.output_tokens": 1, "finish_reason": "stop", "response.id": "sale-8812", "input": "B7", "output": "Sparkling water"}):
        w.log({"model": "VM-300", "usage": usage, "choices": [{"index": 0, "text": "Sparkling water", "finish_reason": "stop"}]})


@app
def machine_tools(w: App) -> None:
    """A milling machine, which calls its tools by name."""
    with w.span("job", job__id="j-5", agent="cell-2", **{"job.tool_calls": [{"id": "call_1", "name": "drill_4mm", "arguments": {"depth": 12}}, {"id": "call_2", "name": "mill_8mm", "arguments": {"feed": 300}}]}):
        w.leaf("tool_call", tool_name="drill_4mm", tool_call_id="call_1", arguments={"depth": 12}, result={"ok": True}, **{"tool.name": "drill_4mm", "tool.wear": 0.2})
        w.leaf("tool_call", fails="spindle overload", tool_name="mill_8mm", tool_call_id="call_2", arguments={"feed": 300}, **{"tool.name": "mill_8mm"})
        w.log({"tool": "drill_4mm", "call_id": "call_1", "input": {"depth": 12}, "output": "done"})


@app
def call_centre(w: App) -> None:
    with w.span("agent.session", SERVER, **{"agent.name": "Dana", "agent.id": "a-7", "session.id": "q-119", "conversation.id": "q-119", "agent.input": "I lost my card", "agent.output": "I have blocked it."}):
        w.leaf("handoff", **{"handoff.from": "Dana", "handoff.to": "fraud_team", "handoff.reason": "lost card"})
        with w.span("agent.session", **{"agent.name": "Pavel", "agent.id": "a-9", "agent.role": "fraud"}):
            w.leaf("card.block", CLIENT, action="block_card", input={"card": "…4411"}, output={"blocked": True})
        w.log([{"role": "customer", "content": "I lost my card"}, {"role": "agent", "content": "I have blocked it."}])


@app
def form_completion(w: App) -> None:
    """A search field that completes what one types, out of a list."""
    with w.span("complete", prompt="amst", completion="Amsterdam Centraal", **{"completion.tokens": 2, "prompt.tokens": 1, "input.value": "amst", "output.value": "Amsterdam Centraal", "completions": ["Amsterdam Centraal", "Amstelveen"], "model": "trie-v2"}):
        w.log({"prompt": "amst", "completion": "Amsterdam Centraal", "completion_tokens": 2, "prompt_tokens": 1})


@app
def bus_network(w: App) -> None:
    with w.span("trip", model="Citaro G", stop_reason="end_of_line", **{"vehicle.model": "Citaro G", "finish_reasons": ["stop"], "stops": ["Harbour", "Station"], "messages": [{"role": "dispatcher", "content": "Hold at Harbour."}, {"role": "driver", "content": "Holding."}], "tickets.tokens": 41}):
        w.log({"role": "dispatcher", "content": "Continue.", "stop_reason": "end_of_line", "model": "Citaro G"})


@app
def weather_model(w: App) -> None:
    """A numerical model of the atmosphere."""
    with w.span("model.run", model="gfs-0p25", **{"model.name": "gfs", "model.provider": "noaa", "temperature": 0.7, "top_p": 0.9, "max_tokens": 384, "input": {"cycle": "06Z", "steps": 120}, "output": {"fields": 84}, "run.usage": {"input_grids": 4, "output_grids": 84}}):
        w.leaf("post", input={"field": "t2m"}, output="19.5", model="gfs-0p25")
        w.log({"model": "gfs-0p25", "temperature": 0.7, "response": {"text": "06Z run complete"}, "finish_reason": "completed"})


@app
def document_search(w: App) -> None:
    """A library's catalogue: a search with documents, scores and a query, and nobody who reads them but the visitor."""
    found = [{"page_content": "The history of lighthouses in the Baltic.", "metadata": {"id": "b-11", "source": "shelf 4"}, "score": 0.91}, {"page_content": "Keepers of the light.", "metadata": {"id": "b-12"}, "score": 0.77}]
    with w.span("retrieve", query="lighthouse history", documents=found, **{"input.value": "lighthouse history", "output.value": found, "retriever.name": "catalogue", "top_k": 2}):
        w.leaf("embed", CLIENT, **{"vector.dimensions": 64, "index.name": "titles", "input": "lighthouse history"})
        w.log({"query": "lighthouse history", "documents": found})


@app
def consent_screens(w: App) -> None:
    with w.span("authorize", SERVER, prompt="consent", response_type="code", **{"oauth.prompt": "consent", "token.type": "bearer", "tokens": {"access_token": "…", "id_token": "…"}, "usage.tokens": 2, "provider": "accounts.example.com", "system": "oauth"}):
        w.log({"prompt": "consent", "system": "oauth", "user": "u-7", "response": {"content": "approved"}, "role": "user"})


@app
def transcript_archive(w: App) -> None:
    """A program that files what other programs logged; it asks no model."""
    row = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi there."}], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}
    with w.span("archive.day", day="2026-11-01", rows=1):
        w.leaf("INSERT transcripts", CLIENT, "opentelemetry.instrumentation.psycopg", **{"db.system.name": "postgresql", "db.query.text": "INSERT INTO transcripts (body) VALUES ($1)", "db.query.parameter.0": row})
        w.leaf("S3.PutObject", CLIENT, "opentelemetry.instrumentation.botocore", **{"rpc.system": "aws-api", "rpc.method": "PutObject", "aws.s3.key": "2026/11/01.jsonl", "request.body": row})
        w.log(f"archived 1 row: {js(row)}")


@app
def usage_pipeline(w: App) -> None:
    """A stream of billing records, as a broker carries it."""
    value = {"id": "chatcmpl-71", "object": "chat.completion", "model": "gpt-4.1-mini", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi there."}}], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}
    with w.span("usage process", CONSUMER, "opentelemetry.instrumentation.kafka", **{"messaging.system": "kafka", "messaging.destination.name": "usage", "messaging.operation.type": "process", "messaging.message.payload": value}):
        w.leaf("UPSERT invoices", CLIENT, "opentelemetry.instrumentation.psycopg", **{"db.system.name": "postgresql", "db.operation.name": "UPSERT", "db.query.text": "UPSERT INTO invoices VALUES ($1, $2)"})


@app
def reverse_proxy(w: App) -> None:
    """A gateway that passes requests on; it sees their paths, not what is in them."""
    with w.span("ingress", SERVER, "envoy", **{"http.request.method": "POST", "url.path": "/v1/chat/completions", "http.response.status_code": 200, "upstream_cluster": "llm-pool", "request_size": 812, "response_size": 1440, "user_agent.original": "OpenAI/Python 2.1"}):
        w.leaf("router llm-pool egress", CLIENT, "envoy", **{"http.request.method": "POST", "url.full": "http://llm-pool/v1/chat/completions", "http.response.status_code": 200, "peer.address": "10.0.0.8:443"})


@app
def mime_mail(w: App) -> None:
    mail = {"role": "sender", "parts": [{"type": "text", "content": "See the offer attached."}, {"type": "file", "name": "offer.pdf"}]}
    with w.span("message.parse", message=mail, **{"message.role": "sender", "message.parts": mail["parts"], "input.messages": [mail], "output.messages": [{"role": "recipient", "parts": [{"type": "text", "content": "Thank you, we accept."}]}]}):
        w.log({"messages": [mail]}, event="mail.parsed")


@app
def chat_webhooks(w: App) -> None:
    with w.span("POST /hooks/chat", SERVER, **{"http.request.method": "POST", "http.route": "/hooks/chat", "http.request.body": {"type": "message", "subtype": "bot_message", "bot_id": "B1", "username": "deploys", "text": "web 4.2 is live", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "web 4.2 is live"}}]}, "http.response.body": {"ok": True, "message": {"text": "web 4.2 is live", "user": "U1", "role": "bot"}}}):
        w.log({"bot": "deploys", "message": {"content": "web 4.2 is live", "role": "bot"}, "thread_id": "t-7"})


@app
def cloud_functions(w: App) -> None:
    with w.span("invoke", CLIENT, **{"faas.invoked_name": "resize", "faas.invoked_provider": "aws", "function.name": "resize", "function.arguments": {"width": 300}, "function_call": {"name": "resize", "arguments": {"width": 300}}, "call_id": "req-9"}):
        w.leaf("resize", SERVER, **{"faas.invocation_id": "req-9", "function.name": "resize", "function.input": {"width": 300}, "function.output": {"bytes": 8812}, "model": "c7g.large"})
        w.log({"type": "function_call_output", "call_id": "req-9", "output": '{"bytes": 8812}'})


@app
def monitoring_agents(w: App) -> None:
    with w.span("agent.run", agent="host-agent", **{"agent.name": "host-agent", "agent.version": "7.61", "agent.type": "collector", "agent.input": {"checks": ["disk", "ntp"]}, "agent.output": {"metrics": 41}, "agent.instructions": "every 15 s"}):
        for check in ("disk", "ntp"):
            w.leaf(f"check {check}", tool=check, **{"check.name": check, "check.input": {"interval": 15}, "check.output": {"status": "ok"}, "agent.name": "host-agent"})
        w.log({"agent": "host-agent", "task": "disk", "result": "ok", "steps": 2})


@app
def human_review(w: App) -> None:
    """Moderators who label messages."""
    thread = [{"role": "user", "content": "Buy followers at …"}, {"role": "system", "content": "This post was reported 3 times."}, {"role": "reviewer", "content": "Spam."}]
    with w.span("review", messages=thread, input={"messages": thread[:2]}, output={"role": "reviewer", "content": "Spam.", "score": 0.99}, **{"review.model": "four-eyes", "reviewer.id": "r-2", "decision.reasoning": "Sells followers.", "decision.confidence": 0.99}):
        w.log({"messages": thread, "decision": "remove", "reasoning": "Sells followers."})


@app
def exam_marking(w: App) -> None:
    sheet = {"prompt": "Explain photosynthesis.", "response": "Plants make sugar from light.", "model_answer": "Light energy is turned into chemical energy.", "score": 0.5, "system": "A-level"}
    with w.span("mark", prompt=sheet["prompt"], response=sheet["response"], **{"prompt.text": sheet["prompt"], "response.text": sheet["response"], "model.answer": sheet["model_answer"], "evaluation.score": 0.5, "candidate.response": sheet, "candidates": [{"content": {"parts": [{"text": sheet["response"]}], "role": "pupil"}}]}):
        w.log(sheet, event="sheet.marked")


@app
def workflow_engine(w: App) -> None:
    """A process engine whose nodes are people and services."""
    with w.span("workflow.run", **{"workflow.name": "leave_request", "workflow.input": {"question": "May I have Friday off?"}, "workflow.output": {"answer": "Approved."}, "workflow.id": "wf-3", "span.kind": "workflow"}):
        with w.span("task manager_decision", **{"task.name": "manager_decision", "task.input": {"messages": [{"role": "employee", "content": "May I have Friday off?"}]}, "task.output": {"messages": [{"role": "manager", "content": "Approved."}]}, "span.type": "task"}):
            w.leaf("node notify", INTERNAL, **{"node.name": "notify", "node.type": "tool", "node.input": {"to": "ben"}, "node.output": "sent"})
        w.log({"workflow": "leave_request", "state": {"messages": [{"role": "manager", "content": "Approved."}]}})


@app
def translation_bureau(w: App) -> None:
    """Translators; the memory holds what they wrote before."""
    with w.span("translate", SERVER, input="Guten Morgen", output="Good morning", model="human", **{"source.text": "Guten Morgen", "target.text": "Good morning", "request.messages": [{"role": "client", "content": "Guten Morgen"}], "response.messages": [{"role": "translator", "content": "Good morning"}], "words.input": 2, "words.output": 2, "cost": 0.24}):
        w.leaf("memory.search", query="Guten Morgen", results=[{"text": "Good morning", "score": 0.98}])
        w.log({"model": "human", "input": "Guten Morgen", "output": "Good morning", "usage": {"input_words": 2, "output_words": 2}})


@app
def serverless_queue(w: App) -> None:
    body = {"conversation_id": "c-77", "messages": [{"role": "user", "content": [{"type": "text", "text": "Where is my taxi?"}]}, {"role": "driver", "content": [{"type": "text", "text": "Two minutes away."}]}]}
    with w.span("rides publish", PRODUCER, "opentelemetry.instrumentation.pika", **{"messaging.system": "rabbitmq", "messaging.destination.name": "rides", "messaging.message.body": body}):
        pass
    with w.span("rides process", CONSUMER, "opentelemetry.instrumentation.pika", **{"messaging.system": "rabbitmq", "messaging.destination.name": "rides", "messaging.message.payload": body, "messaging.message.conversation_id": "c-77"}):
        w.leaf("push", CLIENT, "acme.push", input=body["messages"][1], output={"delivered": True}, **{"device.model": "Pixel 9", "provider": "fcm"})


if __name__ == "__main__":
    record(APPS, Path(sys.argv[1]))
