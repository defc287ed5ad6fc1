// VoltAgent: @voltagent/core 2.10.0, ai 6, @ai-sdk/openai 3, zod, @opentelemetry/exporter-trace-otlp-proto (Node 22).
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { createOpenAI } from "@ai-sdk/openai";
import { Agent, BaseRetriever, InMemoryStorageAdapter, Memory, VoltAgentObservability, createTool } from "@voltagent/core";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const processor = new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }));
const observability = new VoltAgentObservability({ serviceName: "concierge", spanProcessors: [processor] });
const model = createOpenAI({ baseURL: OPENAI })("gpt-4.1-mini");
const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, [description, fields]]) => [name, createTool({
  name, description, parameters: zodSchema(z, fields), execute: (input) => callTool(name, input) })]));

class Handbook extends BaseRetriever {
  constructor(documents) { super(); this.documents = documents; }
  async retrieve() { return this.documents.map((item) => item.content).join("\n\n"); }
}

function begin(plan) {
  let own = plan.tools.map((name) => tools[name]);
  const common = { model, observability, maxRetries: 0, maxSteps: 10 };
  if (plan.sub_agent) {
    const specialist = new Agent({ ...common, name: plan.sub_agent, instructions: SPECIALIST, tools: own, memory: false });
    own = [createTool({ name: plan.sub_agent, description: "Asks the travel specialist.", parameters: z.object({ task: z.string() }),
      execute: async ({ task }, options) => (await specialist.generateText(task, { maxRetries: 0, parentSpan: options?.toolContext ? options.parentToolSpan : options?.parentToolSpan, parentAgentId: options?.agentId })).text })];
  }
  const memory = plan.conversation_id ? new Memory({ storage: new InMemoryStorageAdapter() }) : false;
  const agent = new Agent({ ...common, name: "concierge", instructions: SYSTEM, tools: own, memory, ...(plan.documents.length ? { retriever: new Handbook(plan.documents) } : {}) });
  const options = { maxRetries: 0, maxSteps: 10, ...(plan.conversation_id ? { userId: "user-7", conversationId: plan.conversation_id } : {}) };
  return async (text) => {
    if (!plan.stream) return (await agent.generateText(text, options)).text;
    const stream = await agent.streamText(text, options);
    let answer = "";
    for await (const piece of stream.textStream) answer += piece;
    return answer;
  };
}

await play({ set: "voltagent", scenarios: ALL, begin, flush: async () => { await new Promise((resolve) => setTimeout(resolve, 60)); await processor.forceFlush(); } });
process.exit(0);
