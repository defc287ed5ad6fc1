// Axiom's AI SDK around Vercel's: axiom 0.52.2 (wrapAISDKModel, withSpan, wrapTools), ai 5, @ai-sdk/openai 2,
// @opentelemetry/sdk-trace-node 2, @opentelemetry/exporter-trace-otlp-proto 0.203, zod.
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { RedactionPolicy, initAxiomAI, withSpan, wrapAISDKModel, wrapTools } from "axiom/ai";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
initAxiomAI({ tracer: provider.getTracer("shop"), redactionPolicy: RedactionPolicy.AxiomDefault });
const model = wrapAISDKModel(createOpenAI({ baseURL: OPENAI, apiKey: "x" }).chat("gpt-4.1-mini"));

function agent(plan, step = "answer", system = SYSTEM) {
  const inner = plan.sub_agent ? agent({ ...plan, sub_agent: null }, plan.sub_agent, SPECIALIST) : null;
  const tools = wrapTools(inner
    ? { [plan.sub_agent]: tool({ description: "Ask the travel specialist.", inputSchema: z.object({ task: z.string() }), execute: ({ task }) => inner(task) }) }
    : Object.fromEntries(plan.tools.map((name) => [name, tool({ description: TOOLS[name][0], inputSchema: zodSchema(z, TOOLS[name][1]), execute: (args) => callTool(name, args) })])));
  const messages = [];
  return (text) => withSpan({ capability: "shop_assistant", step }, async (span) => {
    if (plan.conversation_id) span.setAttribute("gen_ai.conversation.id", plan.conversation_id);
    messages.push({ role: "user", content: text });
    const request = { model, system, messages, tools, stopWhen: stepCountIs(10), maxRetries: 0 };
    if (plan.stream) {
      const result = streamText({ ...request, onError: () => {} });
      for await (const _ of result.textStream);
      return await result.text;
    }
    const result = await generateText(request);
    messages.push(...result.response.messages);
    return result.text;
  });
}

await play({
  set: "axiom-ai", scenarios: ALL.filter((one) => !["s5", "s10"].includes(one)), begin: (plan) => agent(plan), flush: () => provider.forceFlush(),
  versions: { axiom: "0.52.2" }, no_agents: true,
});
process.exit(0);
