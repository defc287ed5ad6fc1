// ax: @ax-llm/ax 14 (its OpenAI service and signatures, tracer given as its docs do; content as span events),
// @opentelemetry/sdk-trace-node 2, @opentelemetry/exporter-trace-otlp-proto 0.203.
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { AxMemory, ai, ax } from "@ax-llm/ax";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, jsonSchema, play } from "./play.mjs";

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const tracer = provider.getTracer("shop");
const llm = ai({ name: "openai", apiKey: "x", apiURL: OPENAI, config: { model: "gpt-4.1-mini", stream: false }, options: { tracer, retry: { maxRetries: 0 } } });

function program(plan, stream, description, inner) {
  const functions = inner
    ? [{ name: plan.sub_agent, description: "Ask the travel specialist.", parameters: jsonSchema({ task: "string" }), func: ({ task }) => inner(task) }]
    : plan.tools.map((name) => ({ name, description: TOOLS[name][0], parameters: jsonSchema(TOOLS[name][1]), func: async (args) => {
      const result = await callTool(name, args);
      return typeof result === "string" ? result : JSON.stringify(result);
    } }));
  const made = ax("question:string -> answer:string", { description, functions });
  const mem = plan.conversation_id ? new AxMemory() : undefined;
  return async (question) =>
    (await made.forward(llm, { question }, { stream, tracer, mem, maxRetries: 1, retry: { maxRetries: 0 }, sessionId: plan.conversation_id ?? undefined })).answer;
}

await play({
  set: "ax", scenarios: ALL.filter((one) => !["s5", "s10", "s9", "s9b", "s11"].includes(one)), // its retries cannot be turned off
  begin: (plan) => program(plan, plan.stream, SYSTEM, plan.sub_agent ? program({ ...plan, conversation_id: null }, false, SPECIALIST) : null),
  flush: () => provider.forceFlush(), versions: { "@ax-llm/ax": "14.0.45" }, no_agents: true,
});
process.exit(0);
