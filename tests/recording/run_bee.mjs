// Bee's agent framework for TypeScript with its own spans: bee-agent-framework 0.1.2, @ai-sdk/openai 1,
// @opentelemetry/sdk-trace-node 2, @opentelemetry/exporter-trace-otlp-proto 0.203, zod 3.
process.env.BEE_FRAMEWORK_INSTRUMENTATION_ENABLED = "true";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

process.env.OPENAI_API_ENDPOINT = OPENAI;
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const { ToolCallingAgent } = await import("bee-agent-framework/agents/toolCalling/agent");
const { OpenAIChatModel } = await import("bee-agent-framework/adapters/openai/backend/chat");
const { OpenAIClient } = await import("bee-agent-framework/adapters/openai/backend/client").catch(() => ({}));
const { UnconstrainedMemory } = await import("bee-agent-framework/memory/unconstrainedMemory");
const { DynamicTool, StringToolOutput } = await import("bee-agent-framework/tools/base");

const dynamic = (name, description, inputSchema, run) => new DynamicTool({
  name, description, inputSchema,
  handler: async (input) => { const result = await run(input); return new StringToolOutput(typeof result === "string" ? result : JSON.stringify(result)); } });

function agent(plan, system = SYSTEM) {
  const inner = plan.sub_agent ? agent({ ...plan, sub_agent: null }, SPECIALIST) : null;
  const tools = inner
    ? [dynamic(plan.sub_agent, "Ask the travel specialist.", z.object({ task: z.string() }), ({ task }) => inner(task))]
    : plan.tools.map((name) => dynamic(name, TOOLS[name][0], zodSchema(z, TOOLS[name][1]), (args) => callTool(name, args)));
  const llm = new OpenAIChatModel("gpt-4.1-mini", {}, OpenAIClient ? new OpenAIClient({ baseURL: OPENAI, apiKey: "x" }) : undefined);
  const made = new ToolCallingAgent({ llm, memory: new UnconstrainedMemory(), tools, templates: { system: (old) => old.fork((config) => { config.template = system; }) } });
  return async (prompt) => (await made.run({ prompt }, { execution: { maxRetriesPerStep: 0, totalMaxRetries: 0, maxIterations: 10 } })).result.text;
}

await play({
  set: "bee-js", scenarios: ALL.filter((one) => !["s5", "s10", "s10b"].includes(one)), begin: (plan) => agent(plan), flush: () => provider.forceFlush(),
  versions: { "bee-agent-framework": "0.1.2" }, no_agents: true, no_session: true,
});
process.exit(0);
