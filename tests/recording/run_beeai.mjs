// BeeAI: beeai-framework 0.1.13, @arizeai/openinference-instrumentation-beeai 1.5.30, @opentelemetry/sdk-trace-node 1,
// ai 4, @ai-sdk/openai 1, zod 3.
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { z } from "zod";
import { ALL, OPENAI, STAGE, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const { BeeAIInstrumentation } = await import("@arizeai/openinference-instrumentation-beeai");
const instrumentation = new BeeAIInstrumentation();
instrumentation.setTracerProvider?.(provider);
instrumentation.manuallyInstrument(await import("beeai-framework"));
const { OpenAIChatModel } = await import("beeai-framework/adapters/openai/backend/chat");
const { ToolCallingAgent } = await import("beeai-framework/agents/toolCalling/agent");
const { UnconstrainedMemory } = await import("beeai-framework/memory/unconstrainedMemory");
const { DynamicTool, StringToolOutput } = await import("beeai-framework/tools/base");

const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, [description, fields]]) => [name, new DynamicTool({
  name, description, inputSchema: zodSchema(z, fields),
  async handler(input) {
    const result = await callTool(name, input);
    return new StringToolOutput(typeof result === "string" ? result : JSON.stringify(result));
  },
})]));

function begin(plan) {
  const llm = () => new OpenAIChatModel("gpt-4.1-mini", { stream: plan.stream }, { baseURL: OPENAI, apiKey: "x", compatibility: "compatible" });
  const own = plan.tools.map((name) => tools[name]);
  const build = (list) => new ToolCallingAgent({ llm: llm(), memory: new UnconstrainedMemory(), tools: list });
  let agent = build(own);
  if (plan.sub_agent) {
    const specialist = build(own);
    agent = build([new DynamicTool({
      name: plan.sub_agent, description: "Asks the travel specialist.", inputSchema: z.object({ task: z.string() }),
      async handler({ task }) { return new StringToolOutput((await specialist.run({ prompt: task })).result.text); },
    })]);
  }
  const context = plan.documents.map((item) => item.content).join("\n");
  return async (text, index) => {
    const steps = plan.all_steps[index].map(({ text: answer, ...step }) => answer === undefined ? step : { ...step, tool_calls: [{ name: "final_answer", arguments: { response: answer } }] });
    await fetch(`${STAGE}/__script`, { method: "POST", body: JSON.stringify({ steps, salt: text }), headers: { "content-type": "application/json" } });
    return (await agent.run({ prompt: context ? `Context:\n${context}\n\nQuestion: ${text}` : text }, { execution: { maxRetriesPerStep: 0, totalMaxRetries: 20, maxIterations: 10 } })).result.text;
  };
}

await play({ set: "beeai-js-openinference", scenarios: ALL, begin, no_agents: true, framework_tools: ["final_answer"], flush: async () => { await new Promise((resolve) => setTimeout(resolve, 30)); await provider.forceFlush(); } });
process.exit(0);
