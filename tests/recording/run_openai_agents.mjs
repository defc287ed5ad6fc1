// OpenAI's Agents SDK for JavaScript with a bridge to OpenTelemetry such as applications write: a tracing processor that makes a span of
// each of the SDK's, its data as attributes. @openai/agents 0.20.0 (Responses API), zod,
// @opentelemetry/sdk-trace-node 2, @opentelemetry/exporter-trace-otlp-proto 0.203.
import { ROOT_CONTEXT, SpanStatusCode, trace } from "@opentelemetry/api";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { Agent, MemorySession, OpenAIProvider, Runner, setTraceProcessors, setTracingDisabled, tool } from "@openai/agents";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const tracer = provider.getTracer("openai-agents-bridge");
const open = new Map();
const text = (value) => (typeof value === "object" ? JSON.stringify(value) : value);
setTraceProcessors([{
  onTraceStart: async (item) => {
    const span = tracer.startSpan(item.name, { attributes: { "workflow.name": item.name, ...(item.groupId ? { "workflow.group_id": item.groupId } : {}) } }, ROOT_CONTEXT);
    open.set(item.traceId, span);
  },
  onTraceEnd: async (item) => { open.get(item.traceId)?.end(); open.delete(item.traceId); },
  onSpanStart: async (item) => {
    const parent = open.get(item.parentId) ?? open.get(item.traceId);
    const data = item.spanData;
    open.set(item.spanId, tracer.startSpan(data.name ? `${data.type}.${data.name}` : data.type, {}, parent ? trace.setSpan(ROOT_CONTEXT, parent) : ROOT_CONTEXT));
  },
  onSpanEnd: async (item) => {
    const span = open.get(item.spanId);
    open.delete(item.spanId);
    for (const [key, value] of Object.entries(item.spanData)) if (value != null) span.setAttribute(`openai_agents.${key.replace(/^_/, "")}`, text(value));
    if (item.error) span.setStatus({ code: SpanStatusCode.ERROR, message: item.error.message });
    span.end();
  },
  shutdown: async () => {}, forceFlush: async () => {},
}]);
setTracingDisabled(false);

function agent(plan) {
  const tools = plan.tools.map((name) => tool({ name, description: TOOLS[name][0], parameters: zodSchema(z, TOOLS[name][1]), execute: (args) => callTool(name, args) }));
  const model = "gpt-4.1-mini";
  const inner = plan.sub_agent && new Agent({ name: plan.sub_agent, instructions: SPECIALIST, tools, model })
    .asTool({ toolName: plan.sub_agent, toolDescription: "Ask the travel specialist.", parameters: z.object({ task: z.string() }), inputBuilder: ({ params }) => params.task });
  const made = new Agent({ name: "assistant", instructions: SYSTEM, tools: inner ? [inner] : tools, model });
  const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL: OPENAI, apiKey: "x", useResponses: true }), workflowName: "shop", ...(plan.conversation_id ? { groupId: plan.conversation_id } : {}) });
  const session = plan.conversation_id ? new MemorySession() : undefined;
  return async (question) => {
    const result = await runner.run(made, question, { stream: plan.stream, session });
    if (plan.stream) for await (const _ of result.toStream());
    await result.completed;
    return result.finalOutput;
  };
}

await play({
  set: "openai-agents-js", scenarios: ALL.filter((one) => !["s5", "s10"].includes(one)), begin: agent, flush: () => provider.forceFlush(),
  versions: { "@openai/agents": "0.20.0" },
});
process.exit(0);
