// Mastra. MODE=0.24: @mastra/core 0.24.9, @mastra/otel-exporter 0.3.3, @mastra/memory 0.15.13, @mastra/libsql 0.16.4 (Node 20);
// MODE=1: @mastra/core 1.71.0, observability 1.17.9, otel-exporter 1.4.0, memory 1.31.0, libsql 1.23.1 (Node 22; @ai-sdk/openai 4), or with
// VERSION=1.0: core, observability, otel-exporter, memory, libsql 1.0.0 (@ai-sdk/openai 2);
// with @ai-sdk/openai, zod, @opentelemetry/exporter-trace-otlp-proto.
import { createOpenAI } from "@ai-sdk/openai";
import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { LibSQLStore } from "@mastra/libsql";
import { Memory } from "@mastra/memory";
import { OtelExporter } from "@mastra/otel-exporter";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const mode = process.env.MODE ?? "1";
const provider = createOpenAI({ baseURL: OPENAI });
const model = process.env.CHAT ? provider.chat("gpt-4.1-mini") : provider("gpt-4.1-mini");
const storage = new LibSQLStore({ id: "store", url: ":memory:" });
const exporter = new OtelExporter({ provider: { custom: { endpoint: TRACES, protocol: "http/protobuf" } }, batchSize: 10 });
const config = { configs: { otel: { serviceName: "concierge", exporters: [exporter] } } };
const observability = mode === "1" ? new (await import("@mastra/observability")).Observability(config) : config;

const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, [description, fields]]) => [name, createTool({
  id: name, description, inputSchema: zodSchema(z, fields), execute: (given) => callTool(name, mode === "1" ? given : given.context) })]));
const named = (names) => Object.fromEntries(names.map((name) => [name, tools[name]]));
const settings = { maxSteps: 10, modelSettings: { maxRetries: 0 } };

function begin(plan) {
  let own = named(plan.tools);
  const agents = {};
  if (plan.sub_agent) {
    agents[plan.sub_agent] = new Agent({ id: plan.sub_agent, name: plan.sub_agent, instructions: SPECIALIST, model, tools: own, maxRetries: 0 });
    own = { [plan.sub_agent]: createTool({
      id: plan.sub_agent, description: "Asks the travel specialist.", inputSchema: z.object({ task: z.string() }),
      execute: async (given, more) => {
        const { task } = mode === "1" ? given : given.context;
        const agent = mastra.getAgent(plan.sub_agent);
        return (await agent.generate(task, { ...settings, tracingContext: (mode === "1" ? more : given)?.tracingContext })).text;
      } }) };
  }
  const memory = plan.conversation_id ? new Memory({ storage, options: mode === "1" ? { generateTitle: false } : { threads: { generateTitle: false } } }) : undefined;
  agents.concierge = new Agent({ id: "concierge", name: "Concierge", instructions: SYSTEM, model, tools: own, memory, maxRetries: 0 });
  const mastra = new Mastra({ agents, storage, observability, logger: false });
  return async (text) => {
    const agent = mastra.getAgent("concierge");
    const options = plan.conversation_id
      ? { ...settings, memory: { thread: plan.conversation_id, resource: "user-7" }, tracingOptions: { metadata: { sessionId: plan.conversation_id, userId: "user-7" } } }
      : settings;
    if (!plan.stream) return (await agent.generate(text, options)).text;
    const stream = await agent.stream(text, options);
    for await (const _ of stream.textStream);
    return await stream.text;
  };
}

const flush = async () => {
  await new Promise((resolve) => setTimeout(resolve, 50)); // the last spans are handed over later
  await (exporter.processor?.forceFlush?.() ?? exporter.flush?.());
};
await play({ set: `mastra-${process.env.VERSION ?? mode}`, scenarios: ALL.filter((one) => one !== "s5"), begin, flush });
process.exit(0);
