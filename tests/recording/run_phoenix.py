"""Record Phoenix: arize-phoenix-otel's decorators over OpenInference's OpenAI instrumentation.

    uv pip install arize-phoenix-otel==0.17.2 openai openinference-instrumentation-openai
"""

from contextlib import nullcontext

from agents import STAGE, OpenAIAgent, openai_client, play
from openinference.instrumentation import using_attributes
from phoenix.otel import register

provider = register(project_name="shop", endpoint=f"{STAGE}/v1/traces", protocol="http/protobuf", batch=True, auto_instrument=True, verbose=False)
tracer = provider.get_tracer(__name__)
KINDS = {"agent": tracer.agent, "tool": tracer.tool, "retriever": tracer.chain}


def wrap(kind, name):
    return KINDS[kind](name=name)


def by_decorators(told):
    loop = OpenAIAgent(told, openai_client(), wrap)

    @tracer.agent(name="assistant")
    def assistant(question):
        return loop.answer(question)

    def handle(question):
        with using_attributes(session_id=told["conversation_id"], user_id="u-7") if told["conversation_id"] else nullcontext():
            return assistant(question)

    return handle


play("phoenix-otel-openai", by_decorators, provider.force_flush, ("arize-phoenix-otel", "openai", "openinference-instrumentation-openai"))
