// ADK for TypeScript by IQ: @iqai/adk 0.5.9 (AgentBuilder, its OpenAI model, its telemetry), zod 3; sends spans itself.
import { AgentBuilder, LlmAgent, OpenAiLlm, createTool, initializeTelemetry } from "@iqai/adk";
import { trace } from "@opentelemetry/api";
import { z } from "zod";
import { ALL, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

process.env.OTEL_NODE_DISABLED_INSTRUMENTATIONS = "undici,http,fs"; // they would also show the stage's own requests
initializeTelemetry({ appName: "shop", appVersion: "1.0", otlpEndpoint: TRACES });

async function agent(plan) {
  const tools = plan.tools.map((name) => createTool({ name, description: TOOLS[name][0], schema: zodSchema(z, TOOLS[name][1]), fn: (args) => callTool(name, args) }));
  const inner = plan.sub_agent && await AgentBuilder.create(plan.sub_agent).withModel(new OpenAiLlm("gpt-4.1-mini")).withInstruction(SPECIALIST).withTools(...tools).build();
  const specialist = inner && createTool({ name: plan.sub_agent, description: "Ask the travel specialist.", schema: z.object({ task: z.string() }), fn: ({ task }) => inner.runner.ask(task) });
  const builder = AgentBuilder.create("assistant").withModel(new OpenAiLlm("gpt-4.1-mini")).withInstruction(SYSTEM).withTools(...(specialist ? [specialist] : tools));
  const { runner } = await (plan.conversation_id ? builder.withQuickSession({ appName: "shop", userId: "u-1", sessionId: plan.conversation_id }) : builder).build();
  return async (text) => {
    const answer = await runner.ask(text); // a failure of the model is handed out as the answer
    if (answer.startsWith("Error: ")) throw new Error(answer.slice(7));
    return answer;
  };
}

const flush = async () => {
  const provider = trace.getTracerProvider();
  await (provider.getDelegate?.() ?? provider).forceFlush?.();
};
await play({
  set: "iqai-adk", scenarios: ALL.filter((one) => !["s5", "s10", "s10b"].includes(one)), begin: agent, flush, versions: { "@iqai/adk": "0.5.9" },
});
process.exit(0);
