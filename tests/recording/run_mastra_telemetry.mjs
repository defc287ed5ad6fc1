// Mastra's first telemetry: @mastra/core 0.10.15, @mastra/memory and @mastra/libsql 0.10.3, @ai-sdk/openai 1, zod 3, sdk-trace-node 2 (Node 20).
import { createOpenAI } from "@ai-sdk/openai";
import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { LibSQLStore } from "@mastra/libsql";
import { Memory } from "@mastra/memory";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register(); // what its own bundler does
globalThis.___MASTRA_TELEMETRY___ = true;
const model = createOpenAI({ baseURL: OPENAI })("gpt-4.1-mini");
const storage = new LibSQLStore({ url: ":memory:" });
const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, [description, fields]]) => [name, createTool({
  id: name, description, inputSchema: zodSchema(z, fields), execute: async ({ context }) => {
    try {
      return await callTool(name, context);
    } catch (error) {
      return { error: error.message };
    }
  } })]));
const named = (names) => Object.fromEntries(names.map((name) => [name, tools[name]]));

function begin(plan) {
  let own = named(plan.tools);
  const agents = {};
  if (plan.sub_agent) {
    agents[plan.sub_agent] = new Agent({ name: plan.sub_agent, instructions: SPECIALIST, model, tools: own });
    own = { [plan.sub_agent]: createTool({ id: plan.sub_agent, description: "Asks the travel specialist.", inputSchema: z.object({ task: z.string() }),
      execute: async ({ context }) => (await mastra.getAgent(plan.sub_agent).generate(context.task, { maxRetries: 0 })).text }) };
  }
  const memory = plan.conversation_id ? new Memory({ storage, options: { threads: { generateTitle: false } } }) : undefined;
  agents.concierge = new Agent({ name: "concierge", instructions: SYSTEM, model, tools: own, memory });
  const mastra = new Mastra({ agents, storage, logger: false, telemetry: { serviceName: "concierge", enabled: true } });
  return async (text) => {
    const options = { maxSteps: 10, maxRetries: 0, ...(plan.conversation_id ? { threadId: plan.conversation_id, resourceId: "user-7" } : {}) };
    const agent = mastra.getAgent("concierge");
    if (!plan.stream) return (await agent.generate(text, options)).text;
    const stream = await agent.stream(text, options);
    let answer = "";
    for await (const piece of stream.textStream) answer += piece;
    return answer;
  };
}

await play({ set: "mastra-0.10", scenarios: ALL.filter((one) => one !== "s5"), begin, flush: () => provider.forceFlush() });
process.exit(0);
