"""Record boto3's Bedrock client under three instrumentations: Converse, and InvokeModel with Anthropic's body.

    uv pip install boto3==1.44.5 opentelemetry-instrumentation-botocore==0.66b2 opentelemetry-instrumentation-bedrock==0.62.4 openinference-instrumentation-bedrock==0.1.61
"""

import json
import os
from contextlib import nullcontext

os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_DEFAULT_REGION="us-east-1", OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true")

import boto3
from agents import INSTRUCTIONS, SPECIALIST, STAGE, TOOLS, OrderServiceError, exporter, play, schema
from botocore.config import Config
from openinference.instrumentation import using_session
from openinference.instrumentation.bedrock import BedrockInstrumentor as OpenInference
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.instrumentation.bedrock import BedrockInstrumentor as Traceloop
from opentelemetry.instrumentation.botocore import BotocoreInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter()))
trace.set_tracer_provider(provider)
logs = LoggerProvider()
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{STAGE}/v1/logs")))
tracer = trace.get_tracer("shop")
MODEL = "anthropic.claude-3-5-sonnet-20240620-v1:0"


def new_client():
    return boto3.client("bedrock-runtime", endpoint_url=STAGE, config=Config(retries={"max_attempts": 0}))


class Converse:
    def __init__(self, told, instructions=INSTRUCTIONS):
        self.told, self.instructions, self.client = told, instructions, new_client()
        self.tools = {name: TOOLS[name] for name in told["tools"]}
        if told["sub_agent"]:
            inner = type(self)({**told, "sub_agent": None}, SPECIALIST)
            self.tools = {"travel_specialist": lambda task: inner.answer(task)}
        self.history = []

    def answer(self, question):
        if self.told["documents"]:
            context = "\n\n".join(document["content"] for document in self.told["documents"])
            question = f"Context:\n{context}\n\nQuestion: {question}"
        messages = [*self.history, self.user(question)]
        while True:
            said = self.ask(messages)
            messages.append(said)
            results = [self.result(block) for block in said["content"] if self.asks(block)]
            if not results:
                self.history = messages
                return "".join(block.get("text", "") for block in said["content"])
            messages.append({"role": "user", "content": results})

    def user(self, text):
        return {"role": "user", "content": [{"text": text}]}

    def asks(self, block):
        return "toolUse" in block

    def result(self, block):
        asked = block["toolUse"]
        try:
            result = self.tools[asked["name"]](**asked["input"])
        except OrderServiceError as error:
            return {"toolResult": {"toolUseId": asked["toolUseId"], "content": [{"text": str(error)}], "status": "error"}}
        content = {"text": result} if isinstance(result, str) else {"json": result}
        return {"toolResult": {"toolUseId": asked["toolUseId"], "content": [content], "status": "success"}}

    def ask(self, messages):
        request = {"modelId": MODEL, "system": [{"text": self.instructions}], "messages": messages, "inferenceConfig": {"maxTokens": 500}}
        if self.tools:
            functions = [schema(name)["function"] for name in self.tools]
            specs = [{"toolSpec": {"name": item["name"], "description": item["description"], "inputSchema": {"json": item["parameters"]}}} for item in functions]
            request["toolConfig"] = {"tools": specs}
        if not self.told["stream"]:
            return self.client.converse(**request)["output"]["message"]
        blocks, inputs = {}, {}
        for event in self.client.converse_stream(**request)["stream"]:
            if "contentBlockStart" in event:
                blocks[event["contentBlockStart"]["contentBlockIndex"]] = {"toolUse": dict(event["contentBlockStart"]["start"]["toolUse"])}
            elif "contentBlockDelta" in event:
                index, delta = event["contentBlockDelta"]["contentBlockIndex"], event["contentBlockDelta"]["delta"]
                if "text" in delta:
                    blocks.setdefault(index, {"text": ""})["text"] += delta["text"]
                else:
                    inputs[index] = inputs.get(index, "") + delta["toolUse"]["input"]
        for index, text in inputs.items():
            blocks[index]["toolUse"]["input"] = json.loads(text)
        return {"role": "assistant", "content": list(blocks.values())}


class Invoke(Converse):
    def user(self, text):
        return {"role": "user", "content": [{"type": "text", "text": text}]}

    def asks(self, block):
        return block["type"] == "tool_use"

    def result(self, block):
        try:
            result = self.tools[block["name"]](**block["input"])
        except OrderServiceError as error:
            return {"type": "tool_result", "tool_use_id": block["id"], "content": str(error), "is_error": True}
        return {"type": "tool_result", "tool_use_id": block["id"], "content": result if isinstance(result, str) else json.dumps(result)}

    def ask(self, messages):
        body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 500, "system": self.instructions, "messages": messages}
        if self.tools:
            functions = [schema(name)["function"] for name in self.tools]
            body["tools"] = [{"name": item["name"], "description": item["description"], "input_schema": item["parameters"]} for item in functions]
        if not self.told["stream"]:
            answer = self.client.invoke_model(modelId=MODEL, body=json.dumps(body))
            return {"role": "assistant", "content": json.loads(answer["body"].read())["content"]}
        blocks, inputs = [], {}
        for event in self.client.invoke_model_with_response_stream(modelId=MODEL, body=json.dumps(body))["body"]:
            item = json.loads(event["chunk"]["bytes"])
            if item["type"] == "content_block_start":
                blocks.append(item["content_block"])
            elif item["type"] == "content_block_delta":
                delta = item["delta"]
                if delta["type"] == "text_delta":
                    blocks[-1]["text"] += delta["text"]
                else:
                    inputs[len(blocks) - 1] = inputs.get(len(blocks) - 1, "") + delta["partial_json"]
        for index, text in inputs.items():
            blocks[index]["input"] = json.loads(text)
        return {"role": "assistant", "content": blocks}


def under_a_request(agent):
    def make(told):
        made = agent(told)

        def answer(question):
            with tracer.start_as_current_span("POST /chat", attributes={"session.id": told["conversation_id"]} if told["conversation_id"] else {}):
                return made.answer(question)

        return answer

    return make


def in_session(agent):
    def make(told):
        made = agent(told)

        def answer(question):
            with using_session(told["conversation_id"]) if told["conversation_id"] else nullcontext():
                return made.answer(question)

        return answer

    return make


def flush():
    provider.force_flush()
    logs.force_flush()


PLAIN = {"finish": {"no_agents": True}}
BotocoreInstrumentor().instrument(logger_provider=logs)
play("bedrock-otel", under_a_request(Converse), flush, ("boto3", "opentelemetry-instrumentation-botocore"), **PLAIN)
play("bedrock-otel-invoke", under_a_request(Invoke), flush, ("boto3", "opentelemetry-instrumentation-botocore"), **PLAIN)
BotocoreInstrumentor().uninstrument()
OpenInference().instrument()
play("bedrock-openinference", in_session(Converse), flush, ("boto3", "openinference-instrumentation-bedrock"), ("s7",), **PLAIN)
play("bedrock-openinference-invoke", in_session(Invoke), flush, ("boto3", "openinference-instrumentation-bedrock"), ("s7",), **PLAIN)
OpenInference().uninstrument()
Traceloop().instrument()
play("bedrock-traceloop", under_a_request(Converse), flush, ("boto3", "opentelemetry-instrumentation-bedrock"), **PLAIN)
play("bedrock-traceloop-invoke", under_a_request(Invoke), flush, ("boto3", "opentelemetry-instrumentation-bedrock"), **PLAIN)
