// LangWatch 0.16.1 (TypeScript SDK): its callback handler for LangChain.js 0.3 / LangGraph.js 0.4, below a span of its tracer.
// npm i langwatch langchain @langchain/core @langchain/openai @langchain/langgraph zod @opentelemetry/api \
//   @opentelemetry/sdk-trace-node @opentelemetry/exporter-trace-otlp-proto; see play.mjs
import { OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { getLangWatchTracer } from "langwatch/observability";
import { LangWatchCallbackHandler } from "langwatch/observability/instrumentation/langchain";
import { z } from "zod";

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const tracer = getLangWatchTracer("shop");

const stageTool = (name) => tool((args) => callTool(name, args).then((result) => (typeof result === "string" ? result : JSON.stringify(result))), {
  name, description: TOOLS[name][0], schema: zodSchema(z, TOOLS[name][1]),
});

await play({
  set: "langwatch-js-langchain", scenarios: ["s1", "s2", "s3", "s4", "s6", "s7", "s8", "s9", "s9b", "s10", "s10b", "s11"],
  versions: { langwatch: "0.16.1", langchain: "0.3.37" },
  begin(plan) {
    const model = new ChatOpenAI({ model: "gpt-4.1-mini", maxRetries: 0, apiKey: "x", configuration: { baseURL: OPENAI }, streaming: plan.stream });
    let tools = plan.tools.map(stageTool);
    if (plan.sub_agent) {
      const inner = createReactAgent({ llm: model, tools, prompt: SPECIALIST, name: plan.sub_agent });
      const ask = async ({ task }, config) => (await inner.invoke({ messages: [{ role: "user", content: task }] }, config)).messages.at(-1).content;
      tools = [tool(ask, { name: plan.sub_agent, description: "Ask the specialist.", schema: z.object({ task: z.string() }) })];
    }
    const checkpointer = plan.conversation_id ? new MemorySaver() : undefined;
    const agent = createReactAgent({ llm: model, tools, prompt: SYSTEM, name: "assistant", checkpointer });
    return (text) => tracer.withActiveSpan("handle_message", async (span) => {
      span.setType("workflow").setInput(text);
      if (plan.conversation_id) span.setAttributes({ "langwatch.thread.id": plan.conversation_id, "langwatch.user.id": "u-7" });
      const config = { callbacks: [new LangWatchCallbackHandler()], configurable: plan.conversation_id ? { thread_id: plan.conversation_id } : {} };
      const given = { messages: [{ role: "user", content: text }] };
      let answer;
      if (plan.stream) {
        let state;
        for await (state of await agent.stream(given, { ...config, streamMode: "values" }));
        answer = state.messages.at(-1).content;
      } else answer = (await agent.invoke(given, config)).messages.at(-1).content;
      span.setOutput(answer);
      return answer;
    });
  },
  flush: () => provider.forceFlush(),
});
