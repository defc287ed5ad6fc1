"""Applications without an agent, from chess servers to build agents, which share its words: turn, agent, tool, model, prompt, token.

    python tests/recording/ordinary_more.py FOLDER

As ``ordinary_apps.py``. Names of scopes, spans and attributes are those of real instrumentations and semantic conventions, where there are any.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app_telemetry import CLIENT, CONSUMER, PRODUCER, SERVER, App, js, record

APPS: dict = {}
CONTRIB = "opentelemetry.instrumentation."
REQUEST = {"model": "gpt-4.1-mini", "temperature": 0.2, "messages": [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "Which tea has no caffeine?"}]}
ANSWER = {"id": "chatcmpl-31", "object": "chat.completion", "model": "gpt-4.1-mini-2025-04-14", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Rooibos."}}], "usage": {"prompt_tokens": 21, "completion_tokens": 4, "total_tokens": 25}}


def app(run):
    """Register an application by its function's name."""
    APPS[run.__name__.replace("_", "-")] = run
    return run


def http(method: str, route: str, status: int = 200, **more) -> dict:
    """Attributes of an HTTP server's span."""
    return {"http.request.method": method, "http.route": route, "http.response.status_code": status, "url.path": route, **more}


# people who are called agents, assistants or models


@app
def insurance_agents(w: App) -> None:
    with w.span("invoke_agent", **{"agent.name": "Priya Shah", "agent.id": "lic-2207", "agent.description": "Independent, household and motor", "agent.task": "Quote for a terraced house", "agent.input": {"customer": "Ben", "question": "What does cover cost for a terraced house?"}, "agent.output": {"answer": "About 210 a year.", "premium": 210.4}, "agent.steps": 3, "conversation.id": "lead-88"}):
        w.leaf("agent.step", **{"step.name": "risk check", "step.index": 1, "step.input": {"postcode": "LS6"}, "step.output": {"band": "C"}})
        w.leaf("quote", CLIENT, **{"quote.model": "household-2026", "model": "household-2026", "input": {"band": "C", "rooms": 5}, "output": {"premium": 210.4}, "provider": "norwich"})
        w.log({"agent": "Priya Shah", "customer": "Ben", "role": "agent", "content": "About 210 a year."}, event="agent.message")


@app
def estate_agents(w: App) -> None:
    chat = [{"sender": "buyer", "role": "user", "text": "Is the loft converted?"}, {"sender": "agent", "role": "agent", "text": "It is, with planning consent."}]
    with w.span("POST /listings/{id}/enquiries", SERVER, "io.opentelemetry.spring-webmvc-6.0", **http("POST", "/listings/{id}/enquiries", 201)):
        with w.span("EnquiryService.answer", scope="io.opentelemetry.opentelemetry-instrumentation-annotations-1.16", **{"code.function.name": "com.acme.EnquiryService.answer", "agent": "Tom Ellis", "agent.branch": "Leeds", "enquiry.messages": chat, "enquiry.prompt": "Ask the agent", "prompt": "Ask the agent", "question": chat[0]["text"], "answer": chat[1]["text"]}):
            w.leaf("SELECT listings", CLIENT, "io.opentelemetry.jdbc", **{"db.system.name": "mysql", "db.query.text": "select l.* from listings l where l.agent_id=? and l.model=?", "db.operation.name": "SELECT", "db.collection.name": "listings"})
        w.log("Agent Tom Ellis answered enquiry 5521", scope="com.acme.EnquiryService", thread__name="http-nio-8080-exec-3")


@app
def travel_agents(w: App) -> None:
    """A desk where people plan trips with a reservation system."""
    with w.span("workflow trip_planning", **{"workflow.name": "trip_planning", "traveller.request": "Ten days in Portugal in May", "agent.name": "desk-3", "agent.role": "travel agent", "input": "Ten days in Portugal in May", "output": "Porto, Coimbra, Lisbon: 1,940 for two"}):
        for tool, given, made in (("search_flights", {"to": "OPO", "date": "2026-05-04"}, {"fare": 410}), ("book_hotel", {"city": "Porto", "nights": 3}, {"voucher": "H-22"})):
            w.leaf(f"gds {tool}", CLIENT, "acme.gds", **{"gds.command": tool, "gds.arguments": given, "gds.result": made, "gds.call_id": "c-1", "tool": tool})
        w.leaf("handoff", **{"handoff.from": "desk-3", "handoff.to": "visa-desk", "agent.name": "visa-desk"})
        w.log({"agent": "desk-3", "plan": ["Porto", "Coimbra", "Lisbon"], "role": "assistant", "content": "Porto, Coimbra, Lisbon"}, event="itinerary.proposed")


@app
def fashion_models(w: App) -> None:
    with w.span("booking.request", SERVER, **{"request.model": "Ayan Diallo", "response.model": "Ayan Diallo", "model": "Ayan Diallo", "model.name": "Ayan Diallo", "model.provider": "Atelier North", "agent.name": "Lucie", "input": {"shoot": "autumn", "day": "2026-09-02"}, "output": {"status": "confirmed"}, "usage.rights": "print, 12 months", "response.id": "bk-12", "response.finish_reasons": ["confirmed"]}):
        w.log({"model": "Ayan Diallo", "messages": [{"role": "agent", "content": "She is free on the second."}, {"role": "client", "content": "Booked."}], "provider": "Atelier North"})


@app
def dental_assistants(w: App) -> None:
    notes = [{"role": "assistant", "content": "Upper left six, mesial caries."}, {"role": "system", "content": "Chart saved."}, {"role": "user", "content": "Sensitive to cold since May."}]
    with w.span("consultation", thread_id="pat-71", **{"assistant.id": "asst_ivy", "assistant.name": "Ivy", "thread.id": "pat-71", "run.id": "visit-9", "thread.messages": notes, "session.id": "visit-9"}):
        w.leaf("chart.update", input=notes[0], output={"tooth": 26, "status": "caries"}, **{"message.role": "assistant", "message.content": notes[0]["content"]})
        w.log(notes[0], event="note.dictated", role="assistant")


@app
def support_desk(w: App) -> None:
    comments = [{"author_role": "end-user", "body": "The scanner jams."}, {"author_role": "agent", "body": "Please open the rear door and pull the sheet out."}]
    with w.span("Conversation#reply", SERVER, "OpenTelemetry::Instrumentation::Rails", **http("POST", "/api/v2/conversations/{id}/reply", **{"conversation.id": "883", "conversation.assignee": "agent:Dana", "conversation.comments": comments, "agent.name": "Dana", "agent.output": comments[1]["body"], "macro.prompt": "paper_jam", "macro.completion": comments[1]["body"]})):
        w.leaf("knowledge.search", query="scanner jam", **{"knowledge.documents": [{"id": "kb-4", "content": "Open the rear door.", "score": 7.2}], "retrieval.query": "scanner jam"})
        w.leaf("sentiment", model="vader", input=comments[0]["body"], output={"compound": -0.3})
        w.log({"conversation_id": "883", "role": "agent", "content": comments[1]["body"], "feedback": {"score": 1, "comment": "Quick!"}}, event="conversation.reply")


# turns that are nobody's request


@app
def chess_server(w: App) -> None:
    with w.span("game", SERVER, **{"game.id": "g-5512", "game.white": "user:ana", "game.black": "bot:stockfish", "session.id": "g-5512"}):
        for number, (move, reply) in enumerate((("e2e4", "c7c5"), ("g1f3", "d7d6")), 1):
            with w.span(f"turn {number}", turn=number, input=move, output=reply, **{"turn.number": number, "turn.id": f"g-5512-{number}", "turn.user": "ana", "turn.input": move, "turn.output": reply}):
                w.leaf("bot.think", **{"agent.name": "stockfish", "agent.type": "bot", "engine.model": "nnue-ae6a", "model": "nnue-ae6a", "engine.reasoning": f"{reply} keeps the centre", "usage.nodes": 81233, "max_tokens": 0, "input": move, "output": reply})
        w.log({"turn": 2, "role": "bot", "content": "d7d6", "model": "nnue-ae6a"}, event="turn.completed")


@app
def relay_servers(w: App) -> None:
    """A TURN server, and a detector of who speaks in a conference."""
    with w.span("TURN Allocate", SERVER, "coturn", **{"turn.method": "Allocate", "turn.session.id": "009", "turn.user": "1761:ana", "turn.realm": "meet.example.com", "turn.lifetime": 600, "turn.token": "3f9a"}):
        w.leaf("TURN ChannelBind", SERVER, "coturn", **{"turn.method": "ChannelBind", "turn.session.id": "009", "turn.channel": 16384})
    with w.span("conversation", **{"conversation.id": "room-4", "conversation.turns": 2}):
        for speaker, said in (("user", "Shall we start?"), ("host", "Yes, everybody is here.")):
            w.leaf("user_turn", **{"turn.role": speaker, "turn.text": said, "turn.end_of_turn_probability": 0.93, "transcript": said, "speaker": speaker, "vad.model": "energy", "model": "energy"})
    w.log({"turn": {"role": "host", "text": "Yes, everybody is here."}, "conversation_id": "room-4"}, event="turn.ended")


@app
def debate_minutes(w: App) -> None:
    speeches = [{"role": "user", "name": "Cllr Osei", "content": "Why is the bridge closed?"}, {"role": "assistant", "name": "Deputy clerk", "content": "The bearings are being replaced."}]
    with w.span("minutes.turns", **{"turns": speeches, "input.value": speeches[0]["content"], "output.value": speeches[1]["content"], "input.mime_type": "text/plain", "output.mime_type": "text/plain"}):
        for speech in speeches:
            w.event("turn", role=speech["role"], content=speech["content"])
    w.log({"turns": speeches, "session": "2026-11"}, event="minutes.published")


# messages, conversations, prompts


@app
def matrix_homeserver(w: App) -> None:
    event = {"type": "m.room.message", "sender": "@ben:example.org", "content": {"msgtype": "m.text", "body": "Lunch at noon?", "m.relates_to": {"rel_type": "m.thread", "event_id": "$1"}}, "room_id": "!bikes"}
    with w.span("RoomSendEventRestServlet", SERVER, "synapse", **{"request_id": "PUT-8812", "servlet": "RoomSendEventRestServlet", "http.method": "PUT", "http.url": "/_matrix/client/v3/rooms/!bikes/send/m.room.message/1", "user": "@ben:example.org", "SYNAPSE.ARG.content": event}):
        w.leaf("create_and_send_nonmember_event", scope="synapse", **{"ARG.event_dict": event, "ARG.prompt": "none", "KWARG.ratelimit": True})
        w.leaf("user_directory", scope="synapse", user="@bot:example.org", role="assistant", result="ok")
        w.log(event, event="m.room.message", scope="synapse")


@app
def business_messages(w: App) -> None:
    """Orders between companies, by AS4."""
    user_message = {"MessageInfo": {"MessageId": "m-1@acme"}, "CollaborationInfo": {"ConversationId": "conv-4471", "Action": "submitOrder"}, "PartyInfo": {"From": {"PartyId": "acme", "Role": "initiator"}, "To": {"PartyId": "bolt", "Role": "responder"}}}
    with w.span("as4.receive", SERVER, **{"conversation.id": "conv-4471", "conversation_id": "conv-4471", "message.role": "initiator", "user.message": user_message, "user_message": user_message, "message.content": "<Order id='4471'/>", "agreement": "a-1"}):
        w.leaf("agent.dispatch", **{"agent.name": "order-agent", "action": "submitOrder", "input": "<Order id='4471'/>", "output": "<Receipt/>"})
        w.log({"conversation_id": "conv-4471", "role": "responder", "content": "<Receipt/>"}, event="as4.receipt")


@app
def prompt_cms(w: App) -> None:
    """A content system whose articles are about prompts, with dialogues in them."""
    body = "## Prompting\n\nUser: Write a haiku.\n\nAssistant: Rain on the tin roof…\n\n```json\n" + js(REQUEST) + "\n```"
    entry = {"id": "e-9", "contentType": "article", "title": "How to prompt", "prompt": "Write a haiku.", "completion": "Rain on the tin roof…", "system_prompt": "You are a poet.", "body": body}
    with w.span("POST /entries", SERVER, "@opentelemetry/instrumentation-express", **http("POST", "/entries", 201)):
        with w.span("entry.publish", entry=entry, **{"input": entry, "output": {"url": "/articles/how-to-prompt"}, "entry.prompt": entry["prompt"], "entry.content": body}):
            w.leaf("markdown.render", input=body, output=f"<article>{body}</article>", content=body)
            w.leaf("mongodb.insert", CLIENT, "@opentelemetry/instrumentation-mongodb", **{"db.system": "mongodb", "db.operation": "insert", "db.mongodb.collection": "entries", "db.statement": js(entry)})
        w.log(entry, event="entry.published")


@app
def prompt_library(w: App) -> None:
    """A store of prompt templates for other programs."""
    template = {"name": "tea-advice", "version": 3, "type": "chat", "prompt": [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "{{question}}"}], "config": {"model": "gpt-4.1-mini", "temperature": 0.2, "max_tokens": 200}}
    with w.span("GET /prompts/{name}", SERVER, CONTRIB + "fastapi", **http("GET", "/prompts/{name}")):
        with w.span("prompts.get", prompt=template["prompt"], **{"prompt.name": "tea-advice", "prompt.version": 3, "prompt.template": template["prompt"], "prompt.variables": ["question"], "model": "gpt-4.1-mini", "temperature": 0.2, "response": template}):
            w.leaf("GET", CLIENT, CONTRIB + "redis", **{"db.system": "redis", "db.statement": "GET prompt:tea-advice", "db.response": template})
        w.log(template, event="prompt.read")


@app
def teleprompter(w: App) -> None:
    script = [{"role": "presenter", "content": "Good evening."}, {"role": "guest", "content": "Thank you for having me."}]
    with w.span("prompter.run", prompt="Good evening.", prompts=[line["content"] for line in script], **{"prompt.text": "Good evening.", "prompt.tokens": 2, "prompt.speed": 140, "prompt.id": "p-1", "response": "on air", "messages": script, "model": "AutoCue 17"}):
        w.leaf("prompt", **{"input": script, "output": "Thank you for having me.", "prompt.role": "guest"})
        w.log({"prompt": "Good evening.", "response": "Thank you for having me.", "model": "AutoCue 17"})


# carriers of other programs' calls


@app
def audit_trail(w: App) -> None:
    """A ledger that copies what other programs' users wrote to models."""
    with w.span("audit append", CONSUMER, CONTRIB + "kafka", **{"messaging.system": "kafka", "messaging.destination.name": "ai-audit", "messaging.operation.type": "process", "audit.prompt": REQUEST["messages"][1]["content"], "audit.response": "Rooibos.", "audit.model": "gpt-4.1-mini", "audit.user": "u-31", "audit.actor.role": "user", "audit.usage": ANSWER["usage"], "audit.record": {"request": REQUEST, "response": ANSWER}}):
        w.leaf("hash.chain", input={"request": REQUEST, "response": ANSWER}, output="sha256:77ab")
        w.leaf("INSERT audit", CLIENT, CONTRIB + "psycopg", **{"db.system": "postgresql", "db.statement": "INSERT INTO audit (prompt, response, model, tokens) VALUES (%s, %s, %s, %s)", "db.statement.parameters": f"('{REQUEST['messages'][1]['content']}', 'Rooibos.', 'gpt-4.1-mini', 25)"})
        w.log({"audit": {"prompt": REQUEST["messages"][1]["content"], "response": "Rooibos.", "model": "gpt-4.1-mini"}, "sealed": True}, event="audit.appended")


@app
def topic_mirror(w: App) -> None:
    """A mirror between two clusters, whose topic has requests to models and answers."""
    for topic, body in (("llm-requests", REQUEST), ("llm-responses", ANSWER)):
        with w.span(f"{topic} process", CONSUMER, "io.opentelemetry.kafka-clients-0.11", **{"messaging.system": "kafka", "messaging.destination.name": topic, "messaging.operation": "process", "messaging.kafka.message.offset": 71, "messaging.header.conversation_id": ["c-9"], "messaging.message.body": body}):
            w.leaf(f"{topic} publish", PRODUCER, "io.opentelemetry.kafka-clients-0.11", **{"messaging.system": "kafka", "messaging.destination.name": f"eu.{topic}", "messaging.operation": "publish", "messaging.message.body": body})


@app
def log_shipper(w: App) -> None:
    lines = [{"event.name": "gen_ai.user.message", "body": {"content": "Which tea has no caffeine?"}, "attributes": {"gen_ai.system": "openai"}}, {"event.name": "gen_ai.choice", "body": {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Rooibos."}}, "attributes": {"gen_ai.system": "openai"}}]
    with w.span("pipeline.flush", **{"pipeline.name": "agents-to-s3", "agent.name": "vector", "agent.version": "0.51", "batch.records": lines, "input": lines, "output": {"written": 2}}):
        w.leaf("S3.PutObject", CLIENT, CONTRIB + "botocore", **{"rpc.system": "aws-api", "rpc.service": "S3", "rpc.method": "PutObject", "aws.s3.bucket": "logs", "request.body": "\n".join(map(js, lines))})
        w.log({"shipped": lines}, event="batch.shipped")


@app
def batch_upload(w: App) -> None:
    """A nightly job that hands a file of requests to a provider, and fetches the file of answers the next night."""
    file = "\n".join(js({"custom_id": f"row-{n}", "method": "POST", "url": "/v1/chat/completions", "body": REQUEST}) for n in (1, 2))
    with w.span("nightly.submit", **{"job.rows": 2, "job.input": file}):
        w.leaf("POST", CLIENT, CONTRIB + "httpx", **{"http.request.method": "POST", "url.full": "https://api.openai.com/v1/files", "http.response.status_code": 200, "http.request.body": file, "http.response.body": {"id": "file-1", "object": "file", "purpose": "batch"}})
        w.leaf("POST", CLIENT, CONTRIB + "httpx", **{"http.request.method": "POST", "url.full": "https://api.openai.com/v1/batches", "http.response.status_code": 200, "http.request.body": {"input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h"}, "http.response.body": {"id": "batch_1", "object": "batch", "status": "validating", "request_counts": {"total": 2, "completed": 0}}})
    with w.span("nightly.collect", **{"job.output": "\n".join(js({"custom_id": f"row-{n}", "response": {"status_code": 200, "body": ANSWER}}) for n in (1, 2))}):
        w.leaf("COPY labels", CLIENT, CONTRIB + "psycopg", **{"db.system": "postgresql", "db.statement": "COPY labels FROM STDIN"})


@app
def http_stubs(w: App) -> None:
    """A stub server for other programs' tests."""
    with w.span("POST /v1/chat/completions", SERVER, "wiremock", **http("POST", "/v1/chat/completions", **{"wiremock.stub.id": "s-12", "wiremock.stub.scenario": "tea", "wiremock.stub.response": ANSWER, "user_agent.original": "OpenAI/Python 2.1"})):
        w.leaf("stub.match", input={"url": "/v1/chat/completions", "bodyPatterns": [{"matchesJsonPath": "$.messages"}]}, output={"matched": "s-12"})
    w.log({"stub": "s-12", "request": {"url": "/v1/chat/completions", "body": js(REQUEST)}, "response": {"status": 200, "body": js(ANSWER)}}, event="stub.served")


@app
def token_billing(w: App) -> None:
    with w.span("meter.record", SERVER, **http("POST", "/v1/billing/meter_events", **{"customer.id": "cus_3", "model": "gpt-4.1-mini", "meter.model": "gpt-4.1-mini", "usage.input_tokens": 2100, "usage.output_tokens": 400, "usage.total_tokens": 2500, "cost": 0.0015, "provider": "openai"})):
        w.leaf("invoice.line", **{"line.description": "gpt-4.1-mini, 2,500 tokens", "line.model": "gpt-4.1-mini", "tokens": 2500, "input": {"input_tokens": 2100, "output_tokens": 400}, "output": {"amount": 0.0015}})
        w.log({"customer": "cus_3", "model": "gpt-4.1-mini", "usage": {"input_tokens": 2100, "output_tokens": 400}, "cost": 0.0015}, event="usage.metered")


@app
def catalogue_reindex(w: App) -> None:
    """A nightly job that embeds a catalogue anew: real model calls, and nobody who asked anything."""
    with w.span("reindex", **{"index.name": "products", "documents": 2, "run.id": "night-7"}):
        for page in range(2):
            with w.span("embeddings text-embedding-3-small", CLIENT, "opentelemetry.instrumentation.genai.openai", **{"gen_ai.operation.name": "embeddings", "gen_ai.provider.name": "openai", "gen_ai.system": "openai", "gen_ai.request.model": "text-embedding-3-small", "gen_ai.response.model": "text-embedding-3-small", "gen_ai.usage.input_tokens": 812, "server.address": "api.openai.com"}):
                w.leaf("POST", CLIENT, CONTRIB + "httpx", **{"http.request.method": "POST", "url.full": "https://api.openai.com/v1/embeddings", "http.response.status_code": 200})
            w.leaf("qdrant.upsert", CLIENT, CONTRIB + "qdrant", **{"db.system": "qdrant", "db.operation": "upsert", "qdrant.upsert.collection_name": "products", "qdrant.upsert.points_count": 100, "page": page})


# registries, training and inference of models that write nothing


@app
def model_packages(w: App) -> None:
    for service, method, given, got in (("SageMaker", "CreateModelPackage", {"ModelPackageGroupName": "churn", "InferenceSpecification": {"SupportedContentTypes": ["text/csv"]}}, {"ModelPackageArn": "arn:aws:sagemaker:eu-north-1:1:model-package/churn/4"}), ("SageMaker Runtime", "InvokeEndpoint", {"EndpointName": "churn-4", "Body": "41,2,9.5"}, {"Body": "0.12"}), ("Bedrock", "ListFoundationModels", {"byOutputModality": "TEXT"}, {"modelSummaries": [{"modelId": "anthropic.claude-sonnet-4", "modelName": "Claude", "inputModalities": ["TEXT"]}]})):
        w.leaf(f"{service}.{method}", CLIENT, CONTRIB + "botocore", **{"rpc.system": "aws-api", "rpc.service": service, "rpc.method": method, "aws.region": "eu-north-1", "http.status_code": 200, "aws.request": given, "aws.response": got})
    w.log({"model_package_group": "churn", "version": 4, "status": "Approved", "model": "churn-4", "input": "41,2,9.5", "output": "0.12"})


@app
def mlflow_functions(w: App) -> None:
    """A scoring job whose functions MLflow's decorator traces."""
    def traced(title, kind, given, made):
        return w.span(title, scope="mlflow.tracing", **{"mlflow.traceRequestId": js("tr-1"), "mlflow.spanType": js(kind), "mlflow.spanFunctionName": js(title), "mlflow.spanInputs": given, "mlflow.spanOutputs": made, "mlflow.experimentId": js("7")})

    with traced("score_customers", "UNKNOWN", {"day": "2026-11-01"}, {"scored": 2}):
        with traced("load_features", "UNKNOWN", {"table": "features"}, [[41, 2], [29, 1]]):
            pass
        with traced("parse_dates", "PARSER", {"column": "since"}, {"rows": 2}):
            pass
        with traced("predict", "UNKNOWN", {"model": "churn", "rows": 2}, [0.12, 0.63]):
            w.log({"model": "churn", "params": {"temperature": 1.0, "max_depth": 6}, "metrics": {"auc": 0.91}, "run_id": "r-5"})


@app
def game_agents(w: App) -> None:
    """Reinforcement learning: an agent, its actions, and not a word."""
    with w.span("episode 41", **{"agent.name": "ppo-walker", "agent.type": "policy", "episode.id": "41", "env.name": "Walker2d"}):
        for step in range(2):
            with w.span("agent.act", **{"agent.name": "ppo-walker", "step": step, "agent.observation": [0.1, 0.7], "agent.action": [0.3], "input": [0.1, 0.7], "output": [0.3], "model": "mlp-64", "reward": 1.25}):
                w.leaf("tool.step", tool="simulator", **{"tool.name": "simulator", "action": "step", "observation": {"x": 0.31}, "tool.input": [0.3], "tool.output": {"x": 0.31, "done": False}})
        w.log({"agent": "ppo-walker", "episode": 41, "steps": 2, "action": [0.3], "observation": {"x": 0.31}, "reward": 2.5})


@app
def image_training(w: App) -> None:
    with w.span("trainer.fit", **{"model": "resnet50", "model.name": "resnet50", "run.id": "fit-9", "max_steps": 2, "temperature": 0.07, "input.tokens": 196, "prompt": "none"}):
        for step in range(2):
            with w.span("training_step", step=step, model="resnet50", **{"batch.input": {"shape": [64, 3, 224, 224]}, "batch.output": {"loss": 2.1 - step}, "step.name": "forward", "tokens": 12544, "tokens_per_second": 81000.5}):
                w.leaf("all_reduce", **{"ray.remote_function": "all_reduce", "ray.worker_id": "w-2", "ray.task_id": "t-8"})
        w.log({"model": "resnet50", "step": 2, "loss": 1.1, "completion": 1.0, "usage": {"gpu_hours": 0.4}})


@app
def image_inference(w: App) -> None:
    with w.span("POST /v2/models/resnet50/infer", SERVER, CONTRIB + "aiohttp_server", **http("POST", "/v2/models/{model}/infer")):
        with w.span("InferRequest", SERVER, "triton-server", **{"triton.model_name": "resnet50", "triton.model_version": 3, "triton.trace_id": "1", "triton.trace_parent_id": "0", "triton.request_id": "q-7"}):
            w.leaf("compute", scope="triton-server", **{"triton.model_name": "resnet50", "input": "input_tensor [1,3,224,224]", "output": "probabilities [1,1000]"})
        w.log({"model": "resnet50", "request": {"id": "q-7"}, "response": {"text": "tabby cat", "score": 0.93}, "finish_reason": "ok"})


@app
def image_search(w: App) -> None:
    """A search by picture: an embedding and a retriever, in the words of OpenInference, and nobody who answers."""
    found = {f"retrieval.documents.{n}.document.{key}": value for n, (uri, score) in enumerate((("s3://img/1.png", 0.91), ("s3://img/7.png", 0.88))) for key, value in (("id", uri), ("content", uri), ("score", score))}
    with w.span("GET /similar", SERVER, CONTRIB + "fastapi", **http("GET", "/similar")):
        with w.span("retrieve", scope="acme.images", **{"openinference.span.kind": "RETRIEVER", "input.value": "s3://img/query.png", "retrieval.query": "s3://img/query.png", **found}):
            w.leaf("embed", scope="acme.images", **{"openinference.span.kind": "EMBEDDING", "embedding.model_name": "clip-vit-b32", "embedding.embeddings.0.embedding.text": "s3://img/query.png", "input.value": "s3://img/query.png"})
            w.leaf("chroma.query", CLIENT, CONTRIB + "chromadb", **{"db.system": "chroma", "db.operation": "query", "db.chroma.query.n_results": 2, "db.chroma.query.embeddings_count": 1})


# build agents, monitoring agents, workflow engines


@app
def jenkins(w: App) -> None:
    scope = "io.jenkins.opentelemetry"
    with w.span("BUILD web/main", SERVER, scope, **{"ci.pipeline.id": "web/main", "ci.pipeline.name": "web » main", "ci.pipeline.run.number": 88, "ci.pipeline.run.result": "SUCCESS", "ci.pipeline.run.user": "ana", "cicd.pipeline.name": "web"}):
        with w.span("Phase: Run", scope=scope), w.span("Agent", scope=scope, **{"jenkins.pipeline.step.type": "node", "jenkins.pipeline.step.name": "Allocate node : Body", "jenkins.pipeline.step.agent.label": "linux", "jenkins.computer.name": "agent-7", "ci.pipeline.agent.id": "agent-7", "ci.pipeline.agent.name": "agent-7", "ci.pipeline.agent.label": "linux"}):
            w.leaf("Agent Allocation", scope=scope, **{"jenkins.pipeline.step.type": "node", "jenkins.pipeline.step.agent.label": "linux"})
            with w.span("Stage: Test", scope=scope, **{"jenkins.pipeline.step.type": "stage", "jenkins.pipeline.step.name": "Test"}):
                w.leaf("tool: maven", scope=scope, **{"jenkins.pipeline.step.type": "tool", "jenkins.pipeline.step.name": "Use a tool from a predefined Tool Installation", "jenkins.pipeline.step.args": {"name": "maven-3.9", "type": "maven"}})
                w.leaf("Shell Script", scope=scope, fails="script returned exit code 1", **{"jenkins.pipeline.step.type": "sh", "jenkins.pipeline.step.args": {"script": "mvn -q verify"}, "jenkins.pipeline.step.result": "1"})
        w.log("[Pipeline] node\nRunning on agent-7 in /var/jenkins", scope=scope, **{"jenkins.ansi.annotations": "[]"})


@app
def build_agents(w: App) -> None:
    with w.span("agent job", SERVER, "buildkite-agent", **{"buildkite.agent": "builder-2", "buildkite.job_id": "j-8", "agent.name": "builder-2", "agent.id": "01-2", "agent.queue": "default", "cicd.pipeline.name": "api", "cicd.pipeline.task.name": "test", "cicd.worker.name": "builder-2"}):
        for step, tool in enumerate(("checkout", "command")):
            with w.span(tool, scope="buildkite-agent", **{"step.name": tool, "cicd.pipeline.task.type": "test", "cicd.pipeline.task.run.id": f"t-{step}", "cicd.pipeline.task.run.result": "success"}):
                w.leaf("tool.run", scope="buildkite-agent", **{"tool.name": "docker", "tool.arguments": ["run", "--rm", "api"], "tool.result": "ok", "tool.exit_code": 0, "command": "docker run --rm api"})
        w.log({"agent": "builder-2", "tool": "docker", "arguments": {"command": "run --rm api"}, "output": "ok", "task": "test"})


@app
def fleet_agents(w: App) -> None:
    """Collectors and shippers, managed over OpAMP."""
    with w.span("AgentToServer", SERVER, "opamp-go", **{"opamp.agent.instance_uid": "018f", "agent.description": {"identifying_attributes": {"service.name": "otelcol"}}, "agent.capabilities": 4103, "agent.name": "otelcol", "agent.id": "018f", "agent.status": "healthy"}):
        w.leaf("agent.invoke", scope="opamp-go", **{"agent.name": "otelcol", "agent.command": "restart", "agent.input": {"config_hash": "9a"}, "agent.output": {"status": "applied"}})
    with w.span("publish events", CLIENT, "elastic-agent", **{"agent.type": "filebeat", "agent.ephemeral_id": "e-1", "agent.version": "9.2.0", "ecs.version": "8.17.0", "event.action": "log-read", "message": "GET /health 200", "input.type": "filestream"}):
        w.log({"agent": {"name": "web-1", "type": "filebeat"}, "message": "GET /health 200", "input": {"type": "log"}, "event": {"action": "log-read"}}, scope="elastic-agent")


@app
def prefect_flows(w: App) -> None:
    with w.span("flow daily-sales", scope="prefect", **{"prefect.run.type": "flow", "prefect.flow.name": "daily-sales", "prefect.run.id": "f-1", "prefect.run.name": "brisk-otter", "prefect.tags": ["agent:default"], "agent.name": "default-agent-pool", "workflow.name": "daily-sales"}):
        for task, given, made in (("ask_supplier", {"question": "Stock of tea?"}, {"answer": "12 boxes"}), ("summarize", {"messages": ["12 boxes"]}, {"content": "12 boxes of tea"})):
            w.leaf(f"task {task}", scope="prefect", **{"prefect.run.type": "task", "prefect.task.name": task, "task.name": task, "task.input": given, "task.output": made, "prefect.input.params": given})
    w.log("Finished in state Completed()", scope="prefect", flow_run_name="brisk-otter", agent="default-agent-pool")


@app
def agent_onboarding(w: App) -> None:
    """Temporal workflows that hire people."""
    scope = "temporalio.contrib.opentelemetry"
    with w.span("StartWorkflow:AgentWorkflow", CLIENT, scope, temporalWorkflowID="agent-31"), w.span("RunWorkflow:AgentWorkflow", SERVER, scope, temporalWorkflowID="agent-31", temporalRunID="r-1"):
        for activity in ("invoke_agent_check", "execute_tool_training", "chat_interview"):
            with w.span(f"StartActivity:{activity}", CLIENT, scope, temporalWorkflowID="agent-31"):
                w.leaf(f"RunActivity:{activity}", SERVER, scope, temporalActivityID="1", temporalWorkflowID="agent-31", **{"activity.input": {"agent": "Noor", "question": "Why insurance?"}, "activity.output": {"answer": "I like people.", "passed": True}})
        w.leaf("HandleSignal:agent_message", SERVER, scope, temporalWorkflowID="agent-31", message={"role": "user", "content": "I can start in May."})
        w.leaf("CompleteWorkflow:AgentWorkflow", scope=scope, temporalWorkflowID="agent-31")


@app
def approvals(w: App) -> None:
    """Business processes with user tasks and service tasks."""
    with w.span("process invoice-approval", scope="io.camunda.zeebe", **{"camunda.process": "invoice-approval", "process.instance": "88", "workflow.type": "bpmn", "variables": {"messages": [{"role": "user", "content": "Please approve 1,200 for chairs."}], "model": "standard"}}):
        w.leaf("userTask approve", scope="io.camunda.zeebe", **{"task.type": "userTask", "task.assignee": "role:manager", "task.input": {"question": "Approve 1,200 for chairs?"}, "task.output": {"answer": "yes", "reason": "in budget"}, "node.assignee.type": "agent"})
        w.leaf("serviceTask pay", CLIENT, "io.camunda.zeebe", **{"task.type": "serviceTask", "tool": "sepa", "tool.call": {"id": "call_7", "name": "sepa_transfer", "arguments": {"amount": 1200}}, "result": {"status": "sent"}})
        w.log({"process": "invoice-approval", "decision": {"answer": "yes"}, "next": "pay", "messages": [{"role": "manager", "content": "yes"}]})


@app
def actor_system(w: App) -> None:
    with w.span("Agent.update", scope="opentelemetry_process_propagator", **{"agent.pid": "<0.211.0>", "agent.name": "Cart.Agent", "agent.state": {"items": 1}, "message": {"call": "add_item", "args": ["tea"]}}):
        w.leaf("GenServer.call Cart.Server", scope="opentelemetry_process_propagator", **{"genserver.message": ["add", "tea"], "input": "add tea", "output": "ok", "tool": "cart"})
        w.leaf("actor.tell", PRODUCER, "akka", **{"akka.actor.path": "/user/agents/agent-7", "akka.message.class": "AgentMessage", "message": "AgentMessage(user, tea)"})
    w.log({"agent": "Cart.Agent", "message": "state updated", "response": "ok"})


# tools, tokens, completions, searches


@app
def tool_shop(w: App) -> None:
    drill = {"name": "Cordless drill", "description": "18 V, two batteries", "parameters": {"voltage": 18, "torque": 60}}
    with w.span("tool_rental", SERVER, **http("POST", "/rentals", 201, **{"tool.name": drill["name"], "tool.description": drill["description"], "tool.parameters": drill["parameters"], "tool.id": "drill-18", "tools": [drill, {**drill, "name": "Jigsaw"}], "customer": "ben"})):
        w.leaf("tool.call", CLIENT, tool="Cordless drill", **{"tool.name": "Cordless drill", "tool.call.id": "call_9", "tool.arguments": {"days": 2}, "tool.result": {"deposit": 50}, "tool.status": "success"})
        w.log({"name": "Cordless drill", "arguments": {"days": 2}, "result": {"deposit": 50}, "tool_call_id": "call_9"}, event="tool.rented")


@app
def tokenizers(w: App) -> None:
    """A service that counts tokens, for editors and price tags."""
    with w.span("POST /tokenize", SERVER, **http("POST", "/tokenize", **{"tokenizer.name": "o200k_base", "model": "gpt-4.1", "input": "Which tea has no caffeine?", "output": [18582, 15247, 853, 860, 78440, 30], "usage.prompt_tokens": 6, "token_count": 6, "messages": REQUEST["messages"]})):
        w.leaf("encode", model="gpt-4.1", tokens=6, text="Which tea has no caffeine?", **{"input.value": "Which tea has no caffeine?", "output.value": "6", "llm_tokens": 6})
        w.log({"model": "gpt-4.1", "text": "Which tea has no caffeine?", "tokens": 6, "prompt_tokens": 6})


@app
def token_exchange(w: App) -> None:
    with w.span("POST /oauth/token", SERVER, "Microsoft.AspNetCore", **http("POST", "/oauth/token", **{"oauth.grant_type": "password", "oauth.prompt": "login", "oauth.client": "assistant-app", "oauth.scope": "agent tools.read chat", "usage.tokens": 1, "tokens.input": 1, "tokens.output": 2, "response.type": "token"})):
        w.leaf("issue", **{"token.type": "Bearer", "total_tokens": 2, "token.role": "user", "completion_tokens": 2, "prompt_tokens": 0, "issuer": "login.example.com", "max_tokens": 10})
        w.log({"prompt": "login", "response": {"token_type": "Bearer"}, "usage": {"total_tokens": 2}, "client": "assistant-app"}, event="token.issued")


@app
def editor_completion(w: App) -> None:
    """A language server: completions out of a symbol table."""
    params = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 3, "character": 9}, "context": {"triggerKind": 1}}
    with w.span("textDocument/completion", SERVER, "lsp", **{"rpc.system": "jsonrpc", "rpc.method": "textDocument/completion", "rpc.jsonrpc.version": "2.0", "rpc.jsonrpc.request_id": "31", "params": params, "prompt": "self.mes", "completion": "self.messages", "completions": ["self.messages", "self.message_id"], "model": "python-3.13", "tool.name": "completion"}):
        w.leaf("complete", input="self.mes", output="self.messages", **{"completion.items": [{"label": "messages", "kind": 5}], "completion.finish_reason": "exact"})
        w.log({"method": "textDocument/completion", "result": {"items": [{"label": "messages"}]}, "prompt": "self.mes", "completion": "self.messages"})


@app
def help_search(w: App) -> None:
    """A help center that shows a passage as the answer."""
    hits = [{"id": "d1", "content": "Rooibos has no caffeine.", "score": 9.1, "source": "tea.md"}, {"id": "d2", "content": "Green tea has some.", "score": 4.4, "source": "green.md"}]
    with w.span("answer", SERVER, "acme.search", question="Which tea has no caffeine?", answer=hits[0]["content"], **{"query": "Which tea has no caffeine?", "input": "Which tea has no caffeine?", "output": hits[0]["content"], "search.documents": hits, "context": [hit["content"] for hit in hits], "session.id": "v-3", "user.id": "u-3"}):
        with w.span("retrieve", query="Which tea has no caffeine?", documents=hits, **{"retrieval.documents": hits, "retriever.name": "bm25", "top_k": 2}):
            w.leaf("POST /help/_search", CLIENT, "elasticsearch-api", **{"db.system": "elasticsearch", "db.operation": "search", "db.elasticsearch.path_parts.index": "help", "db.statement": js({"query": {"match": {"content": "caffeine"}}})})
        w.leaf("rerank", model="bm25", query="Which tea has no caffeine?", documents=hits, results=hits[:1])
        w.log({"question": "Which tea has no caffeine?", "answer": hits[0]["content"], "documents": hits, "feedback": "thumbs_up"}, event="answer.shown")


@app
def session_store(w: App) -> None:
    """A cache that other programs keep their conversations in."""
    history = [{"type": "human", "data": {"content": "Which tea has no caffeine?", "type": "human"}}, {"type": "ai", "data": {"content": "Rooibos.", "type": "ai", "tool_calls": []}}]
    for message in history:
        w.leaf("LPUSH", CLIENT, CONTRIB + "redis", **{"db.system": "redis", "db.statement": f"LPUSH message_store:c-9 {js(message)}", "db.redis.args_length": 3, "net.peer.name": "cache"})
    with w.span("session.load", **{"session.id": "c-9", "session.value": {"messages": history, "turn": 1}, "cache.key": "message_store:c-9", "messages": history}):
        w.leaf("LRANGE", CLIENT, CONTRIB + "redis", **{"db.system": "redis", "db.statement": "LRANGE message_store:c-9 0 -1", "db.response": history})
        w.log({"session": "c-9", "state": {"messages": history}}, event="session.loaded")


# configuration, interfaces, votes


@app
def feature_flags(w: App) -> None:
    with w.span("GET /ofrep/v1/evaluate/flags", SERVER, "flagd", **http("POST", "/ofrep/v1/evaluate/flags")):
        for key, variant, value in (("assistant-model", "mini", "gpt-4.1-mini"), ("system-prompt", "brief", "You are a helpful assistant. Answer briefly."), ("tools", "on", js([{"type": "function", "function": {"name": "get_weather"}}]))):
            w.leaf(f"resolve {key}", scope="flagd.evaluator", **{"feature_flag.key": key, "feature_flag.result.variant": variant, "feature_flag.result.value": value, "feature_flag.provider.name": "flagd", "feature_flag.context.id": "user-7", "input": {"targetingKey": "user-7", "model": "gpt-4.1-mini"}, "output": value})
            w.log(None, event="feature_flag.evaluation", **{"feature_flag.key": key, "feature_flag.result.variant": variant, "feature_flag.result.value": value})


@app
def graphql_messenger(w: App) -> None:
    query = "mutation Chat($input: MessageInput!) { sendMessage(input: $input) { role content conversation { id } } }"
    with w.span("mutation Chat", SERVER, "@opentelemetry/instrumentation-graphql", **{"graphql.operation.type": "mutation", "graphql.operation.name": "Chat", "graphql.source": query, "graphql.variables.input": {"role": "USER", "content": "See you at eight", "conversationId": "c-4"}}):
        for kind in ("graphql.parse", "graphql.validate", "graphql.execute"):
            w.leaf(kind, scope="@opentelemetry/instrumentation-graphql", **{"graphql.source": query})
        w.leaf("graphql.resolve", scope="@opentelemetry/instrumentation-graphql", **{"graphql.field.name": "sendMessage", "graphql.field.path": "sendMessage", "graphql.field.type": "Message!", "input": {"role": "USER", "content": "See you at eight"}, "output": {"role": "USER", "content": "See you at eight", "conversation": {"id": "c-4"}}})
        w.log({"data": {"sendMessage": {"role": "USER", "content": "See you at eight", "conversation": {"id": "c-4"}}}}, event="graphql.response")


@app
def parking_assistant(w: App) -> None:
    """A car's parking assistant, over gRPC."""
    with w.span("parking.v1.Assistant/Complete", CLIENT, CONTRIB + "grpc", **{"rpc.system": "grpc", "rpc.service": "parking.v1.Assistant", "rpc.method": "Complete", "rpc.grpc.status_code": 0}):
        with w.span("parking.v1.Assistant/Complete", SERVER, CONTRIB + "grpc", **{"rpc.system": "grpc", "rpc.service": "parking.v1.Assistant", "rpc.method": "Complete", "rpc.message.body": {"model": "e-Golf", "tools": ["camera", "sonar"], "prompt": "bay 7"}}):
            w.leaf("assistant.run", **{"assistant.name": "ParkPilot", "agent": "ParkPilot", "model": "e-Golf", "input": "bay 7", "output": "parked", "tool_calls": [{"id": "call_1", "name": "steer", "arguments": {"deg": 12}}], "finish_reason": "stop", "steps": 4})
            w.event("assistant.message", role="assistant", content="Parked in bay 7.")
            w.log({"role": "assistant", "content": "Parked in bay 7.", "model": "e-Golf", "tool_calls": [{"id": "call_1", "name": "steer", "arguments": {"deg": 12}}]}, event="assistant.said")


@app
def polls_and_surveys(w: App) -> None:
    answers = [{"question": "How likely are you to recommend us?", "answer": "9"}, {"question": "Why?", "answer": "Fast delivery."}]
    with w.span("POST /surveys/{id}/responses", SERVER, **http("POST", "/surveys/{id}/responses", 201, **{"survey.model": "nps", "request.model": "nps"})):
        with w.span("response.store", prompt=answers[1]["question"], response=answers[1]["answer"], **{"response.id": "resp_88", "response.output": answers, "response.status": "completed", "response.choices": [{"index": 0, "text": "9"}], "input": answers[1]["question"], "output": answers[1]["answer"], "user.id": "u-9"}):
            w.event("choice", index=0, message={"role": "respondent", "content": "9"})
        w.log({"id": "resp_88", "object": "response", "status": "completed", "output": [{"type": "message", "role": "respondent", "content": [{"type": "text", "text": "Fast delivery."}]}]}, event="survey.response")


@app
def classroom(w: App) -> None:
    """Lessons with a tutor, as xAPI statements."""
    with w.span("lesson.chat", SERVER, **{"lesson.id": "l-4", "tutor.name": "Mr Bell", "conversation_id": "l-4", "messages": [{"role": "user", "content": "Why is the sky blue?"}, {"role": "tutor", "content": "Short waves scatter more."}], "score": 0.9}):
        w.leaf("statement", **{"actor": "pupil-3", "verb": "completed", "object": "quiz-2", "result.completion": True, "result.response": "Short waves scatter more.", "completion": True, "response": "Short waves scatter more.", "prompt": "Why is the sky blue?", "evaluation.score": 0.9})
        w.log({"actor": "pupil-3", "verb": "answered", "result": {"completion": True, "response": "Short waves scatter more.", "score": {"scaled": 0.9}}, "role": "user", "content": "Why is the sky blue?"}, event="xapi.statement")


@app
def notebooks(w: App) -> None:
    """Kernels and front ends that exchange messages."""
    for kind, content in (("execute_request", {"code": "df.describe()", "silent": False}), ("execute_reply", {"status": "ok", "execution_count": 4})):
        with w.span(kind, SERVER, "jupyter_server", **{"msg_type": kind, "msg_id": "m-7", "session": "s-2", "message.content": content, "message": {"header": {"msg_type": kind}, "parent_header": {"msg_id": "m-6"}, "content": content}, "input": content, "username": "ana"}):
            w.log({"msg_type": kind, "content": content, "role": "kernel"}, scope="jupyter_server")


@app
def drawing_models(w: App) -> None:
    with w.span("model.regenerate", model="bracket_v7", **{"model.name": "bracket_v7", "model.id": "bracket_v7", "model.parameters": {"width": 40, "top_p": 4}, "request.model": "bracket_v7", "response.model": "bracket_v7", "tool": "fillet", "features": 12, "input": {"feature": "fillet", "radius": 2}, "output": {"faces": 48}, "completion": 1.0}):
        w.leaf("tool fillet", tool="fillet", **{"tool.name": "fillet", "tool.arguments": {"radius": 2}, "tool.result": {"faces": 48}, "tool_call_id": "op-12"})
        w.log({"model": "bracket_v7", "tool": "fillet", "arguments": {"radius": 2}, "result": {"faces": 48}, "message": {"role": "designer", "content": "Rounded the edges."}})


@app
def annotation_desk(w: App) -> None:
    """People who rate pairs of a question and an answer that a model gave elsewhere."""
    item = {"input": "Which tea has no caffeine?", "output": "Rooibos.", "expected_output": "Rooibos or herbal.", "model": "gpt-4.1-mini"}
    with w.span("task.submit", SERVER, "io.opentelemetry.servlet-5.0", **http("POST", "/tasks/{id}/annotations", 201, **{"annotator.id": "r-4", "task.data": item, "task.annotation": {"label": "correct", "score": 1.0}, "input": item["input"], "output": item["output"], "expected": item["expected_output"], "model": item["model"], "evaluation.label": "correct"})):
        w.leaf("UPDATE task", CLIENT, "io.opentelemetry.jdbc", **{"db.system": "postgresql", "db.statement": "update task set label=? where id=?"})
        w.log({"item": item, "label": "correct", "annotator": "r-4", "feedback": {"score": 1.0}}, event="annotation.created")


@app
def inference_rollout(w: App) -> None:
    """A controller that deploys servers for models, and calls none."""
    with w.span("reconcile", scope="sigs.k8s.io/controller-runtime", **{"k8s.deployment.name": "vllm-llama", "k8s.namespace.name": "inference", "container.image.name": "vllm/vllm-openai", "container.command_args": ["--model", "meta-llama/Llama-3.1-8B", "--max-model-len", "8192"], "model": "meta-llama/Llama-3.1-8B", "request.max_tokens": 8192, "provider": "vllm"}):
        w.leaf("HTTP GET", CLIENT, "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp", **{"http.request.method": "GET", "url.full": "http://vllm-llama:8000/v1/models", "http.response.status_code": 200, "http.response.body": {"object": "list", "data": [{"id": "meta-llama/Llama-3.1-8B", "object": "model", "max_model_len": 8192}]}})
        w.log("Ready: vllm-llama serves meta-llama/Llama-3.1-8B", model="meta-llama/Llama-3.1-8B", agent="controller")


if __name__ == "__main__":
    record(APPS, Path(sys.argv[1]))
