"""Applications without any model, whose telemetry holds JSON that looks like an agent's: none of it is a turn.

    python tests/recording/ordinary_apps.py FOLDER

writes ``FOLDER/NAME.jsonl`` and ``NAME.logs.jsonl`` for each application, with the real SDK and, where they need no server, the real
instrumentations (opentelemetry-sdk 1.45.1, contrib 0.66b1: flask, fastapi, httpx, requests, sqlalchemy, sqlite3, redis, celery, grpc, jinja2;
strawberry-graphql 0.341). ``ordinary_mixed.py`` plays some of them inside an agent's run.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from pathlib import Path

from app_telemetry import CLIENT, CONSUMER, INTERNAL, PRODUCER, SERVER, App, instrumented, js, record

APPS: dict = {}


def app(run):
    """Register an application by its function's name."""
    APPS[run.__name__.replace("_", "-")] = run
    return run


def serve(wsgi):
    """A WSGI application on a free port: (address, stop)."""
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    server = make_server("127.0.0.1", 0, wsgi, handler_class=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop():
        server.shutdown()
        server.server_close()

    return f"http://127.0.0.1:{server.server_port}", stop


ROOM = [
    {"id": 1, "role": "moderator", "user": "ana", "content": "Welcome to #bikes. Be kind."},
    {"id": 2, "role": "user", "user": "ben", "content": "Which chain fits a 1998 hub gear?"},
    {"id": 3, "role": "user", "user": "cai", "content": "Any 1/8 inch chain."},
]


@app
def cms_flask(w: App) -> None:
    import flask

    site = flask.Flask("cms")
    database = sqlite3.connect(":memory:", check_same_thread=False)
    with instrumented(w, "sqlite3"):
        traced = __import__("opentelemetry.instrumentation.sqlite3", fromlist=["x"]).SQLite3Instrumentor().instrument_connection(database, tracer_provider=w.tracers)
        traced.cursor().execute("CREATE TABLE documents (id INTEGER, title TEXT, body TEXT, author TEXT, role TEXT)")

        @site.post("/documents")
        def create():
            document = flask.request.get_json()
            with w.span("documents.save", document=document, input=document, output={"id": 7, **document}, **{"document.author.role": "editor"}):
                traced.cursor().execute("INSERT INTO documents VALUES (7, ?, ?, ?, ?)", (document["title"], document["body"], document["author"], document["role"]))
                w.log({"message": "document saved", "document": document, "content": document["body"]})
            return {"id": 7, "content": document["body"]}

        from opentelemetry.instrumentation.flask import FlaskInstrumentor

        FlaskInstrumentor().instrument_app(site, tracer_provider=w.tracers)
        site.test_client().post("/documents", json={"title": "Spring menu", "body": "Asparagus is back from Monday.", "author": "M. Olsen", "role": "editor", "context": "menu"})
        site.test_client().post("/documents", json={"title": "Opening hours", "body": "Closed on 1 May.", "author": "M. Olsen", "role": "editor"})


@app
def chat_room_fastapi(w: App) -> None:
    import fastapi
    import sqlalchemy
    from fastapi.testclient import TestClient
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
    from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool, connect_args={"check_same_thread": False})
    SQLAlchemyInstrumentor().instrument(engine=engine, tracer_provider=w.tracers, skip_dep_check=True)
    rooms = fastapi.FastAPI()
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE messages (id INTEGER, role TEXT, content TEXT)"))

    @rooms.post("/rooms/{room}/messages")
    def say(room: str, message: dict):
        with w.span("room.say", room__id=room, message=message, messages=[*ROOM, message], conversation__id=f"room-{room}", **{"message.role": "user", "message.content": message["content"]}):
            with engine.begin() as connection:
                connection.execute(sqlalchemy.text("INSERT INTO messages VALUES (4, :role, :content)"), {"role": "user", "content": message["content"]})
            w.event("message.posted", role="user", content=message["content"])
            w.log(message, event="room.message", role="user")
        return {"messages": [*ROOM, message]}

    FastAPIInstrumentor.instrument_app(rooms, tracer_provider=w.tracers)
    client = TestClient(rooms)
    client.post("/rooms/bikes/messages", json={"role": "user", "user": "dee", "content": "And for a Sturmey-Archer?"})
    client.post("/rooms/bikes/messages", json={"role": "user", "user": "ben", "content": "The same."})
    SQLAlchemyInstrumentor().uninstrument()


@app
def email_threads(w: App) -> None:
    mail = {"from": "ines@example.com", "to": ["orders@example.com"], "subject": "Order 4471", "body": "Hello, where is my parcel?\nInes"}
    answer = {"from": "orders@example.com", "to": ["ines@example.com"], "subject": "Re: Order 4471", "body": "It left our store on Monday."}
    with w.span("imap.fetch", CLIENT, **{"server.address": "imap.example.com", "mail.folder": "INBOX", "mail.count": 1}):
        w.log(js(mail), mailbox="INBOX")
    with w.span("mail.process", INTERNAL, input=mail, output=answer, thread__id="t-4471", **{"mail.thread": [mail, answer]}):
        w.leaf("template.render", INTERNAL, **{"template.name": "order_status", "template.input": {"order": 4471, "name": "Ines"}, "template.output": answer["body"]})
        w.leaf("smtp.send", CLIENT, message=answer, **{"server.address": "smtp.example.com", "smtp.response.code": 250, "message.id": "<a1@example.com>"})
        w.log({"event": "sent", "message": {"subject": answer["subject"], "content": answer["body"]}})


@app
def ticket_system(w: App) -> None:
    ticket = {"id": "T-902", "status": "open", "messages": [
        {"role": "customer", "author": "Noor", "content": "The invoice shows the wrong address."},
        {"role": "agent", "author": "Dana", "content": "I have corrected it, please download it again."},
        {"role": "customer", "author": "Noor", "content": "Thank you!"}]}
    with w.span("POST /tickets/{id}/reply", SERVER, **{"http.request.method": "POST", "http.route": "/tickets/{id}/reply", "http.response.status_code": 200, "url.path": "/tickets/T-902/reply"}):
        with w.span("ticket.reply", INTERNAL, ticket=ticket, agent="Dana", customer="Noor", conversation__id="T-902", **{"agent.id": "dana-7", "ticket.agent": "Dana", "ticket.messages": ticket["messages"]}):
            w.leaf("UPDATE tickets", CLIENT, "acme.db", **{"db.system.name": "postgresql", "db.query.text": "UPDATE tickets SET status = 'answered' WHERE id = $1", "db.operation.name": "UPDATE"})
            w.event("ticket.assigned", agent="Dana", role="agent")
        w.log({"ticket": ticket, "assistant": "none"}, event="ticket.replied")


@app
def http_client_bodies(w: App) -> None:
    import httpx
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

    def handler(request):
        return httpx.Response(200, json={"id": "n-1", "object": "note", "content": "saved", "role": "owner", "choices": ["keep", "discard"]})

    def asked(span, request):
        span.set_attribute("http.request.body", js({"title": "Groceries", "content": "Milk, bread", "role": "owner"}))
        span.set_attribute("http.request.header.content_type", ["application/json"])

    def answered(span, request, response):
        span.set_attribute("http.response.body", js({"id": "n-1", "object": "note", "content": "saved", "choices": ["keep", "discard"]}))

    with w.span("sync.notes"):
        client = httpx.Client(transport=httpx.MockTransport(handler))
        HTTPXClientInstrumentor.instrument_client(client, tracer_provider=w.tracers, request_hook=asked, response_hook=answered)
        client.post("https://notes.example.com/v1/notes", json={"title": "Groceries", "content": "Milk, bread", "role": "owner"})
        client.post("https://notes.example.com/v1/messages", json={"to": "ben", "text": "done"})


@app
def http_server_bodies(w: App) -> None:
    import requests

    def notes(environ, start_response):
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
        with w.span("POST /v1/messages", SERVER, **{"http.request.method": "POST", "url.path": "/v1/messages", "http.request.body.text": raw, "http.request.body": raw, "http.response.status_code": 201}):
            w.log(raw, event="http.access")
            w.leaf("validate", INTERNAL, input=raw, output='{"valid": true}')
        start_response("201 Created", [("content-type", "application/json")])
        return [b'{"message": {"id": 9, "content": "stored"}}']

    address, stop = serve(notes)
    with instrumented(w, "requests"), w.span("outbox.deliver", batch__size=1):
        requests.post(f"{address}/v1/messages", json={"messages": [{"from": "noor", "to": "ben", "content": "See you at eight"}], "model": "direct", "stream": False}, timeout=10)
    stop()


@app
def database_messages(w: App) -> None:
    connection = sqlite3.connect(":memory:")
    from opentelemetry.instrumentation.sqlite3 import SQLite3Instrumentor

    traced = SQLite3Instrumentor().instrument_connection(connection, tracer_provider=w.tracers)
    with w.span("archive.import", **{"batch.rows": 3, "db.rows": [{"role": row["role"], "content": row["content"]} for row in ROOM]}):
        cursor = traced.cursor()
        cursor.execute("CREATE TABLE messages (role TEXT, content TEXT, model TEXT, tokens INTEGER)")
        for row in ROOM:
            cursor.execute(f"INSERT INTO messages (role, content) VALUES ('{row['role']}', '{row['content']}')")
        cursor.execute("SELECT role, content, sum(tokens) FROM messages GROUP BY role, content")
        w.leaf("SELECT messages", CLIENT, "acme.db", **{"db.system": "postgresql", "db.statement": "SELECT role, content FROM messages WHERE conversation_id = 'c-1'", "db.response": [{"role": "user", "content": "hello"}]})


@app
def sqlalchemy_completions(w: App) -> None:
    import sqlalchemy
    from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

    engine = sqlalchemy.create_engine("sqlite://")
    SQLAlchemyInstrumentor().instrument(engine=engine, tracer_provider=w.tracers, skip_dep_check=True)
    with w.span("courses.report", course="first aid", completion=0.83, completions=[{"user": "ben", "completion": 1.0}, {"user": "cai", "completion": 0.66}]):
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("CREATE TABLE completions (task TEXT, completion REAL, prompt TEXT)"))
            connection.execute(sqlalchemy.text("INSERT INTO completions VALUES ('module 3', 0.83, 'Name the recovery position')"))
            connection.execute(sqlalchemy.text("SELECT prompt, completion FROM completions")).all()
        w.log({"prompt": "Name the recovery position", "completion": 0.83, "task": "module 3"})
    SQLAlchemyInstrumentor().uninstrument()


@app
def kafka_events(w: App) -> None:
    value = {"type": "message.created", "message": {"role": "user", "content": "hi all", "conversation_id": "c-9"}, "usage": {"tokens": 2}}
    with w.span("chat-messages publish", PRODUCER, "opentelemetry.instrumentation.kafka", **{"messaging.system": "kafka", "messaging.destination.name": "chat-messages", "messaging.operation.type": "publish", "messaging.message.body": value, "messaging.kafka.message.key": "c-9"}):
        with w.span("chat-messages process", CONSUMER, "opentelemetry.instrumentation.kafka", **{"messaging.system": "kafka", "messaging.destination.name": "chat-messages", "messaging.operation.type": "process", "messaging.message.payload": value, "messaging.consumer.group.name": "search-index", "messaging.message.conversation_id": "c-9"}):
            w.leaf("index", CLIENT, "acme.search", **{"db.system.name": "elasticsearch", "db.operation.name": "index", "db.query.text": js(value["message"])})
            w.log(value, event="consumed")


@app
def rabbitmq_jobs(w: App) -> None:
    body = {"task": "thumbnail", "input": {"image": "a.png", "sizes": [64, 256]}, "messages": ["queued", "started"], "role": "worker"}
    with w.span("jobs send", PRODUCER, "opentelemetry.instrumentation.pika", **{"messaging.system": "rabbitmq", "messaging.destination.name": "jobs", "messaging.message.conversation_id": "corr-71", "messaging.message.body": body}):
        pass
    with w.span("jobs process", CONSUMER, "opentelemetry.instrumentation.pika", **{"messaging.system": "rabbitmq", "messaging.destination.name": "jobs", "messaging.message.conversation_id": "corr-71", "messaging.message.payload": body}):
        w.leaf("thumbnail", INTERNAL, input=body["input"], output={"files": ["a-64.png", "a-256.png"]}, result={"content": "2 files"})
        w.log({"role": "worker", "content": "2 files written", "job": "corr-71"})


@app
def graphql_strawberry(w: App) -> None:
    import strawberry
    from opentelemetry import trace
    from strawberry.extensions.tracing import OpenTelemetryExtension

    @strawberry.type
    class Message:
        role: str
        content: str

    globals()["Message"] = Message  # annotations are looked up there

    @strawberry.type
    class Query:
        @strawberry.field
        def messages(self, room: str, first: int = 2) -> list[Message]:
            return [Message(role=row["role"], content=row["content"]) for row in ROOM[:first]]

    trace._TRACER_PROVIDER = w.tracers
    schema = strawberry.Schema(Query, extensions=[OpenTelemetryExtension])
    query = 'query Messages($room: String!) { messages(room: $room) { role content } }'
    result = asyncio.run(schema.execute(query, variable_values={"room": "bikes"}))
    with w.span("graphql.response", **{"graphql.document": query, "graphql.variables": {"room": "bikes"}, "graphql.response": result.data}):
        pass
    trace._TRACER_PROVIDER = None


@app
def grpc_chat(w: App) -> None:
    from concurrent import futures

    import grpc
    from opentelemetry.instrumentation.grpc import GrpcInstrumentorClient, GrpcInstrumentorServer

    client, server = GrpcInstrumentorClient(), GrpcInstrumentorServer()
    server.instrument(tracer_provider=w.tracers)
    client.instrument(tracer_provider=w.tracers)

    def send(request, context):
        with w.span("SendMessage", INTERNAL, request=request.decode(), response='{"message": {"role": "user", "content": "hi", "id": 5}}', **{"rpc.request": request.decode()}):
            return b'{"message": {"role": "user", "content": "hi", "id": 5}}'

    host = grpc.server(futures.ThreadPoolExecutor(2))
    host.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("chat.v1.Chat", {"SendMessage": grpc.unary_unary_rpc_method_handler(send)}),))
    port = host.add_insecure_port("127.0.0.1:0")
    host.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.unary_unary("/chat.v1.Chat/SendMessage")(js({"conversation_id": "c-3", "message": {"role": "user", "content": "hi"}}).encode())
    host.stop(1).wait()
    client.uninstrument()
    server.uninstrument()


@app
def forum_threads(w: App) -> None:
    posts = [{"author": "cai", "role": "member", "content": "How do I true a wheel?", "votes": 3}, {"author": "ana", "role": "admin", "content": "With patience and a spoke key.", "votes": 11, "accepted": True}]
    with w.span("GET /threads/{id}", SERVER, **{"http.request.method": "GET", "http.route": "/threads/{id}", "http.response.status_code": 200, "user_agent.original": "Mozilla/5.0"}):
        with w.span("thread.load", thread__title="How do I true a wheel?", posts=posts, question=posts[0]["content"], answer=posts[1]["content"]):
            w.leaf("cache.get", CLIENT, "acme.cache", key="thread:81", hit=False)
        w.leaf("thread.render", output=f"<article>{posts[0]['content']}</article>")
        w.log({"thread": 81, "posts": posts})


@app
def sms_notifications(w: App) -> None:
    with w.span("notify", channel="sms", recipient="+4670000000", **{"notification.template": "Hi {name}, your table is ready.", "notification.input": {"name": "Noor"}, "notification.text": "Hi Noor, your table is ready."}):
        w.leaf("POST", CLIENT, "acme.sms", **{"http.request.method": "POST", "url.full": "https://sms.example.com/2010/Messages.json", "http.request.body": {"To": "+4670000000", "Body": "Hi Noor, your table is ready."}, "http.response.status_code": 201, "http.response.body": {"sid": "SM1", "status": "queued", "body": "Hi Noor, your table is ready.", "num_segments": "1", "price": None}})
        w.log({"to": "+4670000000", "text": "Hi Noor, your table is ready.", "type": "text", "role": "notification"})
    w.leaf("notify", fails="carrier rejected: 30007", channel="sms", recipient="+4670000001", input={"text": "Hi Ben, your table is ready."})


@app
def temporal_workflow(w: App) -> None:
    scope = "temporalio.contrib.opentelemetry"
    with w.span("StartWorkflow:RefundOrder", CLIENT, scope, temporalWorkflowID="refund-77"):
        with w.span("RunWorkflow:RefundOrder", SERVER, scope, temporalWorkflowID="refund-77", temporalRunID="5d1", input={"order": 77, "reason": "damaged"}):
            with w.span("StartActivity:charge_back", CLIENT, scope, temporalWorkflowID="refund-77"):
                w.leaf("RunActivity:charge_back", SERVER, scope, temporalActivityID="1", input={"amount": 12.5}, output={"status": "done", "message": "12.50 refunded"})
            with w.span("StartActivity:send_mail", CLIENT, scope, temporalWorkflowID="refund-77"):
                w.leaf("RunActivity:send_mail", SERVER, scope, fails="SMTP 451", temporalActivityID="2", input={"to": "noor@example.com", "content": "Your refund is on its way."})
            w.leaf("CompleteWorkflow:RefundOrder", INTERNAL, scope, temporalWorkflowID="refund-77", output={"result": "refunded"})


@app
def airflow_tasks(w: App) -> None:
    scope = "airflow.processors"
    with w.span("dag_run:daily_sales", INTERNAL, scope, **{"airflow.dag_run.dag_id": "daily_sales", "airflow.dag_run.run_id": "scheduled__2026-11-01"}):
        for task, given, made in (("extract", {"source": "s3"}, {"rows": 1200}), ("transform", {"rows": 1200}, {"rows": 1188}), ("load", {"rows": 1188}, {"table": "sales"})):
            with w.span(f"task:{task}", INTERNAL, scope, **{"airflow.task_instance.task_id": task, "airflow.task_instance.state": "success", "input": given, "output": made, "task.output.value": made}):
                w.log({"message": f"XCom push from {task}", "content": made, "role": "task"}, scope=scope)


@app
def model_registry(w: App) -> None:
    with w.span("register_model", model="churn-xgboost", version=12, **{"model.name": "churn-xgboost", "model.version": "12", "model.stage": "Production", "model.parameters": {"max_depth": 6, "temperature": 1.0}, "model.signature": {"inputs": [{"name": "age", "type": "long"}], "outputs": [{"type": "double"}]}}):
        w.leaf("upload", CLIENT, "acme.s3", **{"rpc.system": "aws-api", "rpc.service": "S3", "rpc.method": "PutObject", "aws.s3.bucket": "models"})
    with w.span("predict", SERVER, model="churn-xgboost", **{"model.name": "churn-xgboost", "model_name": "churn-xgboost", "input": {"age": 41, "plan": "gold"}, "output": {"churn": 0.12}, "latency_ms": 3}):
        w.log({"model": "churn-xgboost", "model_version": "12", "input": [41, 2], "prediction": 0.12, "response": {"score": 0.12}})


@app
def car_models(w: App) -> None:
    offer = {"make": "Volkswagen", "model": "Golf", "year": 2021, "price": 17990, "features": ["heated seats", "tow bar"], "description": "One owner, serviced yearly."}
    with w.span("GET /cars/search", SERVER, **{"http.request.method": "GET", "http.route": "/cars/search", "url.query": "model=Golf", "http.response.status_code": 200}):
        with w.span("search.cars", query="Golf 2021 tow bar", model="Golf", **{"request.model": "Golf", "response.model": "Golf Variant", "search.results": [offer, {**offer, "year": 2020}]}):
            w.leaf("price.estimate", model="Golf", input=offer, output={"price": 17250, "confidence": 0.8})
        w.log({"model": "Golf", "choices": [offer], "provider": "autohaus-nord"})


@app
def user_agents(w: App) -> None:
    for agent, version in (("Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0", "150"), ("GPTBot/1.2 (+https://example.com/bot)", "1.2"), ("okhttp/4.9", "4.9")):
        with w.span("GET /", SERVER, **{"http.request.method": "GET", "user_agent.original": agent, "http.user_agent": agent, "agent.name": agent.split("/")[0], "agent.version": version, "agent.type": "browser", "http.response.status_code": 200}):
            w.leaf("agent.classify", input=agent, output={"bot": "Bot" in agent, "agent": agent.split("/")[0]}, agent=agent)
            w.log({"agent": agent, "request": "GET / HTTP/1.1", "response": 200, "bytes": 512})


@app
def celery_queue(w: App) -> None:
    import celery

    jobs = celery.Celery("jobs", broker="memory://", backend="cache+memory://")
    jobs.conf.task_always_eager = True

    @jobs.task(name="render.invoice")
    def invoice(order, messages):
        with w.span("invoice.pdf", input={"order": order, "messages": messages}, output={"pages": 2}, **{"task.completion": 1.0, "task.role": "worker"}):
            w.log({"task": "render.invoice", "args": {"order": order, "messages": messages}, "result": {"pages": 2}})
        return {"pages": 2}

    with instrumented(w, "celery"), w.span("checkout", order__id=4471):
        invoice.delay(4471, [{"role": "note", "content": "Leave at the door"}])
        invoice.apply(args=(4472, []))


@app
def payment_tokens(w: App) -> None:
    with w.span("POST /payments", SERVER, **{"http.request.method": "POST", "http.route": "/payments", "http.response.status_code": 200}):
        with w.span("tokenize", tokens=3, token__count=3, total_tokens=3, **{"payment.token": "tok_9f2", "payment.tokens": ["tok_9f2", "tok_a11", "tok_c07"], "payment.provider": "stripe", "provider.name": "stripe"}):
            w.log({"tokens": 3, "provider": "stripe", "model": "card", "usage": {"total_tokens": 3, "limit": 10}})
        w.leaf("charge", CLIENT, "acme.pay", amount=12.5, **{"response.id": "ch_77", "finish_reason": "approved", "response.status": "completed"})


@app
def telephony(w: App) -> None:
    transcript = [{"speaker": "caller", "text": "I would like to move my appointment."}, {"speaker": "clerk", "text": "Thursday at ten?"}, {"speaker": "caller", "text": "Perfect."}]
    with w.span("call", SERVER, conversation_id="call-5521", call__direction="inbound", session__id="call-5521", **{"call.agent": "clerk-4", "agent.name": "clerk-4", "call.transcript": transcript, "call.duration_s": 61, "user.id": "caller-88"}):
        w.leaf("ivr.menu", prompt="Press 1 for appointments", **{"ivr.prompt": "Press 1 for appointments", "ivr.input": "1", "conversation_id": "call-5521"})
        w.leaf("transfer", **{"transfer.from": "ivr", "transfer.to": "clerk-4", "handoff": True})
        w.log({"conversation_id": "call-5521", "role": "caller", "content": transcript[0]["text"]})


@app
def translation_catalogue(w: App) -> None:
    units = [{"msgid": "Save", "msgstr": "Speichern"}, {"msgid": "Do you want to discard {count} messages?", "msgstr": "{count} Nachrichten verwerfen?"}]
    with w.span("compile.catalogue", locale="de", prompt="Do you want to discard {count} messages?", completion=0.97, **{"input": units[1]["msgid"], "output": units[1]["msgstr"], "catalogue.messages": units, "prompts": [unit["msgid"] for unit in units]}):
        w.log({"messages": units, "language": "de", "completion": 0.97})
    w.leaf("lookup", **{"input": "Save", "output": "Speichern", "source.text": "Save", "target.text": "Speichern", "provider": "gettext"})


@app
def parking_tokens(w: App) -> None:
    usage = {"input_tokens": 4, "output_tokens": 1, "total_tokens": 5}
    with w.span("barrier.close", usage=usage, **{"usage.input_tokens": 4, "usage.output_tokens": 1, "usage.total_tokens": 5, "machine.model": "PX-200", "machine.id": "north-gate", "token.kind": "coin"}):
        w.log({"machine": "PX-200", "usage": usage, "input": "4 tokens dropped", "output": "1 token returned"})
    w.leaf("barrier.open", model="PX-200", tokens=4, cost=2.0, **{"usage.input_tokens": 4, "usage.cost": 2.0})


@app
def task_tracker(w: App) -> None:
    task = {"id": "OPS-12", "title": "Rotate keys", "assignee": "cai", "completion": 0.5, "comments": [{"author": "ana", "role": "lead", "content": "Please finish before Friday."}]}
    with w.span("task.update", task=task, completion=1.0, status="completed", **{"task.input": {"completion": 0.5}, "task.output": {"completion": 1.0}, "task.completion": "done", "finish_reason": "closed"}):
        w.event("comment", role="lead", content="Well done.")
        w.log({"completion": "done", "task": task, "finish_reason": "closed", "content": "OPS-12 closed"})


@app
def json_rpc(w: App) -> None:
    call = {"jsonrpc": "2.0", "id": "rpc-1", "method": "tools.calibrate", "params": {"name": "drill-4", "arguments": {"rpm": 1200}}}
    with w.span("rpc", SERVER, **{"rpc.system": "jsonrpc", "rpc.method": "tools.calibrate", "rpc.jsonrpc.request_id": "rpc-1", "rpc.request.body": call, "function_call": {"name": "calibrate", "arguments": {"rpm": 1200}}}):
        w.leaf("calibrate", INTERNAL, function="calibrate", **{"function.name": "calibrate", "function.arguments": {"rpm": 1200}, "function.result": {"ok": True}, "tool": "drill-4", "tool.id": "drill-4"})
        w.log({"function_call": {"name": "calibrate", "arguments": "{\"rpm\": 1200}"}, "result": {"ok": True}})


@app
def redis_sessions(w: App) -> None:
    import fakeredis

    with instrumented(w, "redis"), w.span("session.save", session__id="s-81", user__id="u-3"):
        store = fakeredis.FakeRedis()
        store.set("session:s-81", js({"messages": [{"role": "user", "content": "flash: saved"}], "user": "ben"}))
        store.rpush("room:bikes", js(ROOM[0]), js(ROOM[1]))
        store.get("session:s-81")
        w.leaf("cache.value", **{"cache.key": "session:s-81", "cache.value": {"messages": [{"role": "user", "content": "flash: saved"}], "user": "ben"}, "value": js(ROOM)})


@app
def access_control(w: App) -> None:
    roles = [{"role": "user", "content": ["read"]}, {"role": "assistant", "content": ["read", "write"]}, {"role": "system", "content": ["read", "write", "grant"]}]
    with w.span("policy.check", roles=roles, role="assistant", user__id="u-9", **{"user.role": "assistant", "policy.input": {"role": "assistant", "action": "write"}, "policy.output": {"allow": True}, "policy.name": "library"}):
        w.log({"role": "assistant", "action": "write", "decision": "allow", "policies": roles})
    w.leaf("policy.check", fails="denied", role="user", input={"role": "user", "action": "grant"}, output={"allow": False})


@app
def product_search(w: App) -> None:
    hits = [{"id": "sku-1", "score": 8.1, "title": "Rain jacket", "content": "Waterproof, 20k column."}, {"id": "sku-2", "score": 6.4, "title": "Wind jacket", "content": "Light, not waterproof."}]
    with w.span("GET /search", SERVER, **{"http.request.method": "GET", "http.route": "/search", "url.query": "q=rain+jacket", "http.response.status_code": 200}):
        with w.span("search", query="rain jacket", documents=hits, top_k=2, **{"search.query": "rain jacket", "search.hits": hits, "retrieval.count": 2}):
            w.leaf("POST products/_search", CLIENT, "elasticsearch-api", **{"db.system.name": "elasticsearch", "db.operation.name": "search", "db.query.text": {"query": {"match": {"content": "rain jacket"}}}, "db.collection.name": "products", "db.response": {"hits": {"hits": hits}}})
        w.leaf("rerank", input={"query": "rain jacket", "documents": hits}, output=hits[:1], scores=[8.1, 6.4])


@app
def build_pipeline(w: App) -> None:
    with w.span("pipeline", pipeline__name="main", agent="linux-runner-3", **{"agent.name": "linux-runner-3", "ci.agent": "linux-runner-3", "workflow.name": "build"}):
        for tool, arguments, result in (("eslint", ["src", "--fix"], "0 problems"), ("terraform", ["plan"], "2 to add"), ("trivy", ["image", "web"], "no findings")):
            w.leaf(f"step {tool}", tool=tool, **{"step.tool": tool, "step.args": arguments, "step.input": {"args": arguments}, "step.output": result, "exit.code": 0, "tool_version": "9"})
        w.leaf("step deploy", fails="exit status 1", tool="helm", **{"step.args": ["upgrade", "web"], "exit.code": 1})
        w.log({"tool": "terraform", "arguments": {"command": "plan"}, "result": "2 to add", "agent": "linux-runner-3"})


@app
def quiz_survey(w: App) -> None:
    form = {"question": "Which is the largest lake in Africa?", "choices": [{"index": 0, "text": "Victoria"}, {"index": 1, "text": "Chad"}], "answer": 0}
    with w.span("quiz.answer", SERVER, question=form["question"], choices=form["choices"], answer="Victoria", prompt=form["question"], response="Victoria", **{"quiz.input": form, "quiz.output": {"correct": True, "choices": form["choices"]}, "user.id": "pupil-3", "session.id": "class-4b"}):
        w.log({"prompt": form["question"], "response": {"choice": 0, "text": "Victoria"}, "choices": form["choices"]})


@app
def mail_templates(w: App) -> None:
    import jinja2

    with instrumented(w, "jinja2"), w.span("newsletter", input={"template": "hello", "context": {"name": "Ines"}}, **{"template.context": ["Ines", "autumn"], "system": "newsletter", "instructions": "Send at eight"}):
        text = jinja2.Environment(loader=jinja2.DictLoader({"hello": "Hello {{ name }}, {{ offer }}"})).get_template("hello").render(name="Ines", offer="all tulips half price")
        w.leaf("send", CLIENT, output=text, content=text, role="marketing", **{"message.role": "marketing", "message.content": text})
        w.log(text)


@app
def smart_home(w: App) -> None:
    async def run():
        with w.span("device.command", device="lamp-2", **{"device.model": "Hue A19", "model": "Hue A19", "command.name": "set_colour", "command.arguments": {"colour": "teal"}, "command.id": "call_1"}):
            await asyncio.sleep(0)
            w.leaf("device.reply", **{"command.id": "call_1", "command.result": {"ok": True}, "message": {"id": "call_1", "content": "colour set", "type": "result"}})
        w.log({"id": "call_1", "name": "set_colour", "arguments": {"colour": "teal"}, "type": "command", "device": "lamp-2"})

    asyncio.run(run())


@app
def game_server(w: App) -> None:
    lines = [{"role": "npc", "name": "Blacksmith", "content": "Need a sword?"}, {"role": "player", "name": "Aiko", "content": "A shield, please."}]
    with w.span("dialogue", SERVER, dialogue=lines, agent="Blacksmith", action="sell", **{"npc.name": "Blacksmith", "agent.name": "Blacksmith", "dialogue.tree": {"node": 4, "choices": ["sword", "shield"]}, "session.id": "world-2"}):
        w.leaf("inventory.add", name="shield", arguments={"item": "shield", "count": 1}, result="ok")
        w.event("line", role="npc", content="Here you are.")
        w.log(lines)


if __name__ == "__main__":
    record(APPS, Path(sys.argv[1]))
