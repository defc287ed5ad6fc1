"""Record MLflow's tracing with OTLP export: @mlflow.trace on a loop with mlflow.openai.autolog, and mlflow.langchain.autolog.

    uv pip install mlflow==3.17.2 openai langchain langchain-openai langgraph opentelemetry-exporter-otlp-proto-http
"""

import os
import tempfile

from agents import STAGE, LangChainAgent, OpenAIAgent, openai_client, play

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{STAGE}/v1/traces"
os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
os.environ["OTEL_SERVICE_NAME"] = "shop"

import mlflow

mlflow.set_tracking_uri(f"sqlite:///{tempfile.mkdtemp()}/mlflow.db")
KINDS = {"agent": "AGENT", "tool": "TOOL", "retriever": "RETRIEVER"}


def wrap(kind, name):
    def decorate(function):
        function.__name__ = name
        return mlflow.trace(function, name=name, span_type=KINDS[kind])

    return decorate


def remember(told):
    if told["conversation_id"]:
        mlflow.update_current_trace(metadata={"mlflow.trace.session": told["conversation_id"], "mlflow.trace.user": "u-7"})


def by_decorators(told):
    mlflow.langchain.autolog(disable=True)
    mlflow.openai.autolog()
    agent = OpenAIAgent(told, openai_client(), wrap)

    @mlflow.trace(name="handle_message", span_type="AGENT")
    def handle_message(question):
        remember(told)
        return agent.answer(question)

    return handle_message


def by_autolog(told):
    mlflow.openai.autolog(disable=True)
    mlflow.langchain.autolog()
    agent = LangChainAgent(told)
    if not told["conversation_id"]:
        return agent.answer

    @mlflow.trace
    def chat(question):
        remember(told)
        return agent.answer(question)

    return chat


def flush():
    from mlflow.tracing.provider import provider

    mlflow.flush_trace_async_logging()
    provider.get().force_flush()


PACKAGES = ("mlflow", "openai")
play("mlflow-otlp-openai", by_decorators, flush, PACKAGES)
play("mlflow-otlp-langchain", by_autolog, flush, (*PACKAGES, "langchain", "langgraph"))
