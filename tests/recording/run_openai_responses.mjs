// Record the OpenAI SDK's Responses API under Traceloop's JavaScript instrumentation: a loop by hand that keeps its history.
// npm i openai @traceloop/instrumentation-openai@0.27.0 @opentelemetry/sdk-trace-node @opentelemetry/exporter-trace-otlp-http @opentelemetry/api
import { createRequire } from "node:module";
import { trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { OpenAIInstrumentation } from "@traceloop/instrumentation-openai";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, jsonSchema, play } from "./play.mjs";

const OpenAI = createRequire(import.meta.url)("openai").OpenAI;
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const instrumentation = new OpenAIInstrumentation();
instrumentation.setTracerProvider(provider);
instrumentation.manuallyInstrument(OpenAI);
const client = new OpenAI({ baseURL: OPENAI, apiKey: "x", maxRetries: 0 });
const tracer = trace.getTracer("shop");

function agent(plan, instructions = SYSTEM) {
  const inner = plan.sub_agent ? agent({ ...plan, sub_agent: null }, SPECIALIST) : null;
  const fields = inner ? { travel_specialist: ["Ask the travel specialist.", { task: "string" }] } : Object.fromEntries(plan.tools.map((name) => [name, TOOLS[name]]));
  const tools = Object.entries(fields).map(([name, [description, parameters]]) => ({ type: "function", name, description, parameters: jsonSchema(parameters) }));
  const run = (name, args) => (inner ? inner(args.task) : callTool(name, args));
  let history = [];
  return async (question) => {
    const context = plan.documents.map((document) => document.content).join("\n\n");
    const input = [...history, { role: "user", content: context ? `Documents:\n${context}\n\nQuestion: ${question}` : question }];
    for (;;) {
      const response = await client.responses.create({ model: "gpt-4.1-mini", instructions, input, ...(tools.length ? { tools } : {}) });
      input.push(...response.output);
      const asked = response.output.filter((item) => item.type === "function_call");
      if (!asked.length) {
        history = input;
        return response.output_text;
      }
      for (const item of asked) {
        let output;
        try {
          const result = await run(item.name, JSON.parse(item.arguments));
          output = typeof result === "string" ? result : JSON.stringify(result);
        } catch (error) {
          if (error.name !== "OrderServiceError") throw error;
          output = `Error: ${error.message}`;
        }
        input.push({ type: "function_call_output", call_id: item.call_id, output });
      }
    }
  };
}

const scenarios = ALL.filter((name) => !["s10", "s10b"].includes(name)); // it does not follow streams
const flush = () => provider.forceFlush();
const versions = { "@traceloop/instrumentation-openai": "0.27.0" };
await play({
  set: "openai-responses-traceloop-js", scenarios: scenarios.filter((name) => name !== "s7"), begin: (plan) => agent(plan), flush,
  versions, no_session: true, no_agents: true,
});
await play({
  set: "openai-responses-traceloop-js-request", scenarios, flush, versions, no_agents: true,
  begin: (plan) => {
    const ask = agent(plan);
    const attributes = plan.conversation_id ? { "session.id": plan.conversation_id } : {};
    return (question) =>
      tracer.startActiveSpan("POST /chat", { attributes }, async (span) => {
        try {
          return await ask(question);
        } finally {
          span.end();
        }
      });
  },
});
