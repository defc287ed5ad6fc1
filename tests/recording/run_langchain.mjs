// LangChain.js: langchain 1.5.14, @langchain/core 1.4.0, @langchain/openai 1.5.8, @langchain/langgraph 1.7.3, zod; under
// INSTR=traceloop (@traceloop/node-server-sdk 0.27.0: MODE=workflow inside its workflows, MODE=plain the same
// without its instrumentation of openai, which breaks streams, MODE=bare without workflows)
// | openinference (@arizeai/openinference-instrumentation-langchain 4.1.1, @opentelemetry/sdk-trace-node 2).
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { z } from "zod";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const { INSTR = "traceloop", MODE = "workflow" } = process.env;
const exporter = new OTLPTraceExporter({ url: TRACES });
let flush;
let around = (plan, run) => run;
if (INSTR === "traceloop") {
  const traceloop = await import("@traceloop/node-server-sdk");
  const { OpenAI } = await import("openai");
  traceloop.initialize({ appName: "concierge", exporter, disableBatch: false, traceloopSyncEnabled: false, instrumentModules: { langchain: true, ...(MODE === "plain" ? {} : { openAI: OpenAI }) }, silenceInitializationMessage: true });
  flush = () => traceloop.forceFlush();
  await new Promise((resolve) => setTimeout(resolve, 300)); // it patches what is imported later
  if (MODE !== "bare") around = (plan, run) => (text) => {
    const inside = () => traceloop.withWorkflow({ name: "concierge" }, run, text);
    return plan.conversation_id ? traceloop.withAssociationProperties({ session_id: plan.conversation_id }, inside) : inside();
  };
} else {
  const { NodeTracerProvider } = await import("@opentelemetry/sdk-trace-node");
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
  provider.register();
  const { LangChainInstrumentation } = await import("@arizeai/openinference-instrumentation-langchain");
  const instrumentation = new LangChainInstrumentation();
  instrumentation.manuallyInstrument(await import("@langchain/core/callbacks/manager"));
  instrumentation.setTracerProvider?.(provider);
  flush = () => provider.forceFlush();
}
const { createAgent, tool } = await import("langchain");
const { ChatOpenAI } = await import("@langchain/openai");
const { MemorySaver } = await import("@langchain/langgraph");
const { BaseRetriever } = await import("@langchain/core/retrievers");
const { ChatPromptTemplate } = await import("@langchain/core/prompts");
const { StringOutputParser } = await import("@langchain/core/output_parsers");
const { RunnablePassthrough, RunnableSequence } = await import("@langchain/core/runnables");

const model = (more) => new ChatOpenAI({ model: "gpt-4.1-mini", maxRetries: 0, configuration: { baseURL: OPENAI }, ...more });
const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, [description, fields]]) => [name, tool(async (input) => {
  try {
    const result = await callTool(name, input);
    return typeof result === "string" ? result : JSON.stringify(result);
  } catch (error) {
    if (name !== "lookup_order") throw error;
    return `Error: ${error.message}`; // as its guide has it: what a tool throws ends the run
  }
}, { name, description, schema: zodSchema(z, fields) })]));

class Handbook extends BaseRetriever {
  lc_namespace = ["app"];
  constructor(documents) { super(); this.documents = documents; }
  async _getRelevantDocuments() {
    return this.documents.map((item) => ({ pageContent: item.content, metadata: { id: item.id, score: item.score } }));
  }
}

function begin(plan) {
  const llm = model();
  if (plan.documents.length) {
    const chain = RunnableSequence.from([
      { context: new Handbook(plan.documents).pipe((found) => found.map((item) => item.pageContent).join("\n\n")), question: new RunnablePassthrough() },
      ChatPromptTemplate.fromMessages([["system", "Answer from these documents.\n\n{context}"], ["human", "{question}"]]), llm, new StringOutputParser(),
    ]);
    return around(plan, (text) => chain.invoke(text));
  }
  let own = plan.tools.map((name) => tools[name]);
  if (plan.sub_agent) {
    const specialist = createAgent({ model: llm, tools: own, systemPrompt: SPECIALIST, name: plan.sub_agent });
    own = [tool(async ({ task }) => (await specialist.invoke({ messages: [{ role: "user", content: task }] })).messages.at(-1).content,
      { name: plan.sub_agent, description: "Asks the travel specialist.", schema: z.object({ task: z.string() }) })];
  }
  const agent = createAgent({ model: llm, tools: own, systemPrompt: SYSTEM, name: "concierge", ...(plan.conversation_id ? { checkpointer: new MemorySaver() } : {}) });
  const config = { recursionLimit: 50, ...(plan.conversation_id ? { configurable: { thread_id: plan.conversation_id }, metadata: { session_id: plan.conversation_id } } : {}) };
  return around(plan, async (text) => {
    const input = { messages: [{ role: "user", content: text }] };
    if (!plan.stream) return (await agent.invoke(input, config)).messages.at(-1).content;
    let last;
    for await (const [mode, state] of await agent.stream(input, { ...config, streamMode: ["messages", "values"] })) if (mode === "values") last = state;
    return last.messages.at(-1).content;
  });
}

await play({ set: `langchain-js-${INSTR}${INSTR === "traceloop" ? `-${MODE}` : ""}`, scenarios: ALL.filter((one) => INSTR !== "traceloop" || MODE === "plain" || !one.startsWith("s10")), begin, flush: async () => { await new Promise((resolve) => setTimeout(resolve, 30)); await flush(); } });
process.exit(0);
