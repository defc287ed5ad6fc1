// TanStack AI: @tanstack/ai 0.58.0, @tanstack/ai-openai 0.23.1 (Chat Completions), its OpenTelemetry middleware with content;
// @opentelemetry/sdk-trace-node 2, @opentelemetry/exporter-trace-otlp-proto 0.203, zod.
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { chat, maxIterations, toolDefinition } from "@tanstack/ai";
import { createOpenaiChatCompletions } from "@tanstack/ai-openai";
import { otelMiddleware } from "@tanstack/ai/middlewares/otel";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const otel = otelMiddleware({ tracer: provider.getTracer("shop"), captureContent: true });
const adapter = createOpenaiChatCompletions("gpt-4.1-mini", "x", { baseURL: OPENAI, maxRetries: 0 });

async function ask(system, messages, tools, threadId) {
  let text = "";
  let failure;
  const request = { adapter, messages, systemPrompts: [system], tools, agentLoopStrategy: maxIterations(10), middleware: [otel], ...(threadId ? { threadId } : {}) };
  for await (const chunk of chat(request)) {
    if (chunk.type === "TEXT_MESSAGE_CONTENT") text += chunk.delta;
    if (chunk.type === "TOOL_CALL_START") text = "";
    if (chunk.type === "RUN_ERROR") failure = Object.assign(new Error(chunk.message ?? chunk.error?.message), { name: chunk.code ?? "RunError" });
  }
  if (failure) throw failure;
  return text;
}

function agent(plan) {
  const tools = plan.tools.map((name) =>
    toolDefinition({ name, description: TOOLS[name][0], inputSchema: zodSchema(z, TOOLS[name][1]) }).server((args) => callTool(name, args)));
  const specialist = plan.sub_agent && toolDefinition({ name: plan.sub_agent, description: "Ask the travel specialist.", inputSchema: z.object({ task: z.string() }) })
    .server(({ task }) => ask(SPECIALIST, [{ role: "user", content: task }], tools));
  const messages = [];
  return async (content) => {
    messages.push({ role: "user", content });
    const answer = await ask(SYSTEM, [...messages], specialist ? [specialist] : tools, plan.conversation_id);
    messages.push({ role: "assistant", content: answer });
    return answer;
  };
}

await play({
  set: "tanstack-ai", scenarios: ALL.filter((one) => !["s5", "s10"].includes(one)), begin: agent, flush: () => provider.forceFlush(),
  versions: { "@tanstack/ai": "0.58.0" }, no_agents: true,
});
process.exit(0);
