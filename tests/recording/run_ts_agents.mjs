// Agent frameworks in TypeScript with their own telemetry. One at a time in SDK=
// strands (@strands-agents/sdk 1.16.0, openai 6; LATEST=1: with the newest conventions that its docs offer)
// | beeai (beeai-framework 0.1.2, ai 4, @ai-sdk/openai 1, zod 3: its BeeAgent, whose tool calls are text).
// zod, @opentelemetry/sdk-trace-node 2, @opentelemetry/exporter-trace-otlp-proto.
import { createRequire } from "node:module";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, STAGE, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const { SDK = "strands", LATEST } = process.env;
const text = (result) => (typeof result === "string" ? result : JSON.stringify(result));
const task = z.object({ task: z.string() });
const version = (name) => { for (const path of createRequire(import.meta.url).resolve.paths(name)) try { return { [name]: createRequire(import.meta.url)(`${path}/${name}/package.json`).version }; } catch {} };
const setups = {
  async strands() {
    if (LATEST) process.env.OTEL_SEMCONV_STABILITY_OPT_IN = "gen_ai_latest_experimental,gen_ai_tool_definitions";
    process.env.OTEL_EXPORTER_OTLP_ENDPOINT = STAGE;
    process.env.OTEL_EXPORTER_OTLP_PROTOCOL = "http/protobuf";
    const { setupTracer } = await import("@strands-agents/sdk/telemetry");
    const { Agent, tool } = await import("@strands-agents/sdk");
    const { OpenAIModel } = await import("@strands-agents/sdk/models/openai");
    const provider = setupTracer({ exporters: { otlp: true } });
    const made = (name, description, inputSchema, callback) => tool({ name, description, inputSchema, callback });
    const build = (plan, name, systemPrompt, tools) => new Agent({
      model: new OpenAIModel({ api: "chat", modelId: "gpt-4.1-mini", apiKey: "x", clientConfig: { baseURL: OPENAI, maxRetries: 0 } }), name, systemPrompt, tools, printer: false, retryStrategy: null,
      ...(plan.conversation_id ? { traceAttributes: { "session.id": plan.conversation_id } } : {}),
    });
    return {
      set: LATEST ? "strands-js-latest" : "strands-js", flush: () => provider.forceFlush(), versions: version("@strands-agents/sdk"),
      begin(plan) {
        let tools = plan.tools.map((name) => made(name, TOOLS[name][0], zodSchema(z, TOOLS[name][1]), (args) => callTool(name, args)));
        if (plan.sub_agent) {
          const own = tools;
          tools = [made(plan.sub_agent, "Ask the travel specialist.", task, async (args) => String(await build(plan, plan.sub_agent, SPECIALIST, own).invoke(args.task)))];
        }
        const agent = build(plan, "concierge", SYSTEM, tools);
        return async (question) => String(await agent.invoke(question)).trim();
      },
    };
  },
  // Its events become spans once a run has finished, in the provider that is the global one then.
  async beeai() {
    process.env.BEE_FRAMEWORK_INSTRUMENTATION_ENABLED = "true";
    const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
    provider.register();
    const { BeeAgent } = await import("beeai-framework/agents/bee/agent");
    const { OpenAIChatModel } = await import("beeai-framework/adapters/openai/backend/chat");
    const { UnconstrainedMemory } = await import("beeai-framework/memory/unconstrainedMemory");
    const { DynamicTool, StringToolOutput } = await import("beeai-framework/tools/base");
    const llm = new OpenAIChatModel("gpt-4.1-mini", {}, { baseURL: OPENAI, apiKey: "x", compatibility: "compatible" });
    const made = (name, description, inputSchema, run) => new DynamicTool({ name, description, inputSchema, handler: async (input) => new StringToolOutput(text(await run(input))) });
    const build = (tools) => new BeeAgent({ llm, memory: new UnconstrainedMemory(), tools });
    // Its agent reads its calls from the model's text.
    const spoken = ({ text: answer, tool_calls: [call] = [], ...step }) => ({ ...step, text: call
      ? `Thought: I need to call ${call.name}.\nFunction Name: ${call.name}\nFunction Input: ${JSON.stringify(call.arguments)}\nFunction Output:` : `Thought: I know the answer.\nFinal Answer: ${answer}` });
    return {
      set: "beeai-js", no_agents: true, flush: async () => { await new Promise((resolve) => setTimeout(resolve, 300)); await provider.forceFlush(); }, versions: version("beeai-framework"),
      scenarios: ["s1", "s2", "s4", "s6", "s8", "s9", "s9b", "s10b", "s11"],
      begin(plan) {
        const agent = build(plan.tools.map((name) => made(name, TOOLS[name][0], zodSchema(z, TOOLS[name][1]), (args) => callTool(name, args))));
        return async (question, index) => {
          const steps = plan.all_steps[index].map((step) => step.error ? step : spoken(step));
          await fetch(`${STAGE}/__script`, { method: "POST", body: JSON.stringify({ steps, salt: question }) });
          return (await agent.run({ prompt: question }, { execution: { maxRetriesPerStep: 0, totalMaxRetries: 20, maxIterations: 10 } })).result.text;
        };
      },
    };
  },
};
await play({ scenarios: ALL.filter((one) => !["s5", "s10"].includes(one)), ...(await setups[SDK]()) });
process.exit(0);
