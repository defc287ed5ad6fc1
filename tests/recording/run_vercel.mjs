// Vercel AI SDK 5: ai 5, @ai-sdk/openai 2, zod, @opentelemetry/sdk-trace-node 2 (VERSION=4: ai 4, @ai-sdk/openai 1).
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { createOpenAI } from "@ai-sdk/openai";
import * as sdk from "ai";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const { VERSION = "5" } = process.env;
const { generateText, stepCountIs, streamText, tool } = sdk;
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const model = createOpenAI({ baseURL: OPENAI })("gpt-4.1-mini");
const schema = VERSION === "4" ? "parameters" : "inputSchema";
const steps = VERSION === "4" ? { maxSteps: 10 } : { stopWhen: stepCountIs(10) };
const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, [description, fields]]) => [name, tool({
  description, [schema]: zodSchema(z, fields), execute: async (input) => {
    try {
      return await callTool(name, input);
    } catch (error) {
      if (VERSION === "4") return { error: error.message }; // what a tool throws ends the call
      throw error;
    }
  } })]));

function begin(plan) {
  const messages = [];
  const telemetry = (functionId) => ({ experimental_telemetry: { isEnabled: true, functionId, metadata: plan.conversation_id ? { sessionId: plan.conversation_id } : {} } });
  let own = Object.fromEntries(plan.tools.map((name) => [name, tools[name]]));
  if (plan.sub_agent) {
    const theirs = own;
    own = { [plan.sub_agent]: tool({ description: "Asks the travel specialist.", [schema]: z.object({ task: z.string() }),
      execute: async ({ task }) => (await generateText({ model, system: SPECIALIST, prompt: task, tools: theirs, ...steps, maxRetries: 0, ...telemetry(plan.sub_agent) })).text }) };
  }
  return async (text) => {
    messages.push({ role: "user", content: text });
    const request = { model, system: SYSTEM, messages, tools: own, ...steps, maxRetries: 0, ...telemetry("concierge") };
    if (plan.stream) {
      let failed;
      const result = streamText({ ...request, onError: ({ error }) => { failed = error; } });
      let answer = "";
      for await (const piece of result.textStream) answer += piece;
      if (failed) throw failed;
      return answer;
    }
    const result = await generateText(request);
    messages.push(...result.response.messages);
    return result.text;
  };
}

await play({ set: `vercel-ai-v${VERSION}`, scenarios: ALL.filter((one) => one !== "s5"), begin, flush: () => provider.forceFlush() });
process.exit(0);
