// Google ADK for JS: @google/adk 2.0.0, @google/genai 2.32, zod, @opentelemetry/sdk-trace-node 2, exporter-trace-otlp-proto.
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { z } from "zod";
import { ALL, SPECIALIST, STAGE, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

process.env.GOOGLE_GEMINI_BASE_URL = STAGE;
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const { AgentTool, FunctionTool, InMemoryRunner, LlmAgent, StreamingMode } = await import("@google/adk");

const model = process.env.MODEL ?? "gemini-2.5-flash";
const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, [description, fields]]) => [name, new FunctionTool({
  name, description, parameters: zodSchema(z, fields), execute: (input) => callTool(name, input) })]));

async function begin(plan) {
  let own = plan.tools.map((name) => tools[name]);
  if (plan.sub_agent) {
    const specialist = new LlmAgent({ name: plan.sub_agent, model, description: "Knows what to pack.", instruction: SPECIALIST, tools: own,
      inputSchema: { type: "OBJECT", properties: { task: { type: "STRING" } }, required: ["task"] } });
    own = [new AgentTool({ agent: specialist })];
  }
  const agent = new LlmAgent({ name: "concierge", model, description: "Helps.", instruction: SYSTEM, tools: own });
  const runner = new InMemoryRunner({ agent, appName: "concierge" });
  const session = await runner.sessionService.createSession({ appName: "concierge", userId: "user-7", sessionId: plan.conversation_id ?? undefined });
  return async (text) => {
    let answer = "";
    const runConfig = plan.stream ? { streamingMode: StreamingMode.SSE } : undefined;
    for await (const event of runner.runAsync({ userId: "user-7", sessionId: session.id, newMessage: { role: "user", parts: [{ text }] }, runConfig })) {
      if (event.errorCode) throw Object.assign(new Error(event.errorMessage), { name: String(event.errorCode) });
      const said = event.content?.parts?.map((part) => part.text ?? "").join("") ?? "";
      if (said && !event.partial) answer = said;
    }
    return answer;
  };
}

await play({ set: "adk-js", scenarios: ALL.filter((one) => one !== "s5"), begin, flush: () => provider.forceFlush() });
process.exit(0);
