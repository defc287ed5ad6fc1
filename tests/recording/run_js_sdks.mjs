// Vendors' SDKs for JavaScript around a loop by hand on the OpenAI SDK (Chat Completions). One at a time in SDK=
// judgeval (judgeval 1.2.1: observe, wrap) | sentry (@sentry/node 10.78 with openAIIntegration, spans for agent and tools as its docs teach).
// | langsmith (langsmith 0.3.87 with its OpenTelemetry export: traceable, wrapOpenAI).
// openai 5 or newer, @opentelemetry/sdk-trace-node 2, @opentelemetry/exporter-trace-otlp-proto 0.203.
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, jsonSchema, play } from "./play.mjs";

const { SDK = "judgeval" } = process.env;
const processor = new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }));
let flush = () => processor.forceFlush();
let client, versions;
// What an SDK puts around an agent's run, one tool's call, and one request of a user.
let asAgent = (name, run) => run;
let asTool = (name, run) => run;
let asRequest = (plan, run) => run;
const made = async () => new (createRequire(import.meta.url)("openai").OpenAI)({ baseURL: OPENAI, apiKey: "x", maxRetries: 0 });

if (SDK === "judgeval") {
  const { Tracer } = await import("judgeval");
  const backend = createServer((_, answer) => answer.setHeader("content-type", "application/json").end('{"project_id": "shop"}')).listen(0, "127.0.0.1");
  await once(backend, "listening");
  const apiUrl = `http://127.0.0.1:${backend.address().port}`;
  await Tracer.init({ projectName: "shop", apiKey: "none", organizationId: "none", apiUrl, spanProcessors: [processor] });
  client = Tracer.wrap(await made());
  const observe = (spanType) => (name, run) => {
    const named = { [name]: (...args) => run(...args) }[name];
    return Tracer.observe(named, { spanType, spanName: name });
  };
  asAgent = observe("agent");
  asTool = observe("tool");
  asRequest = (plan, run) => plan.conversation_id ? Tracer.observe((text) => { Tracer.setSessionId(plan.conversation_id); return run(text); }, { spanType: "span", spanName: "chat" }) : run;
  versions = { judgeval: "1.2.1" };
}
if (SDK === "sentry") {
  const Sentry = createRequire(import.meta.url)("@sentry/node");
  Sentry.init({
    dsn: "http://public@127.0.0.1:9/1", tracesSampleRate: 1, sendDefaultPii: true, openTelemetrySpanProcessors: [processor],
    integrations: [Sentry.openAIIntegration({ recordInputs: true, recordOutputs: true })], transport: () => ({ send: async () => ({}), flush: async () => true }),
  });
  client = await made();
  asAgent = (name, run) => (text) => Sentry.startSpan(
    { op: "gen_ai.invoke_agent", name: `invoke_agent ${name}`, attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "gpt-4.1-mini", "gen_ai.agent.name": name } },
    async (span) => {
      const output = await run(text);
      span.setAttribute("gen_ai.response.text", JSON.stringify([output]));
      return output;
    });
  asTool = (name, run) => (args) => Sentry.startSpan(
    { op: "gen_ai.execute_tool", name: `execute_tool ${name}`, attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.request.model": "gpt-4.1-mini", "gen_ai.tool.name": name, "gen_ai.tool.input": JSON.stringify(args) } },
    async (span) => {
      const output = await run(args);
      span.setAttribute("gen_ai.tool.output", JSON.stringify(output));
      return output;
    });
  asRequest = (plan, run) => (text) => Sentry.withIsolationScope(() => {
    if (plan.conversation_id) Sentry.setConversationId?.(plan.conversation_id);
    return run(text);
  });
  versions = { "@sentry/node": Sentry.SDK_VERSION };
}
if (SDK === "langsmith") {
  Object.assign(process.env, { LANGSMITH_TRACING: "true", LANGSMITH_OTEL_ENABLED: "true", LANGSMITH_API_KEY: "none", LANGSMITH_ENDPOINT: OPENAI });
  const { initializeOTEL } = await import("langsmith/experimental/otel/setup");
  const { DEFAULT_LANGSMITH_TRACER_PROVIDER: provider } = initializeOTEL({ exporterConfig: { url: TRACES } });
  const { traceable } = await import("langsmith/traceable");
  const { wrapOpenAI } = await import("langsmith/wrappers");
  client = wrapOpenAI(await made());
  asAgent = (name, run) => traceable(run, { name, run_type: "chain" });
  asTool = (name, run) => traceable(run, { name, run_type: "tool" });
  asRequest = (plan, run) => plan.conversation_id ? traceable((text) => run(text), { name: "chat", metadata: { session_id: plan.conversation_id } }) : run;
  flush = async () => { await new Promise((resolve) => setTimeout(resolve, 500)); await provider.forceFlush(); };
  versions = { langsmith: "0.3.87" };
}

function agent(plan, name = "assistant", instructions = SYSTEM) {
  const inner = plan.sub_agent ? agent({ ...plan, sub_agent: null, documents: [] }, plan.sub_agent, SPECIALIST) : null;
  const fields = inner ? { [plan.sub_agent]: ["Ask the travel specialist.", { task: "string" }] } : Object.fromEntries(plan.tools.map((one) => [one, TOOLS[one]]));
  const tools = Object.entries(fields).map(([one, [description, parameters]]) => ({ type: "function", function: { name: one, description, parameters: jsonSchema(parameters) } }));
  const runs = Object.fromEntries(Object.keys(fields).map((one) => [one, asTool(one, inner ? (args) => inner(args.task) : (args) => callTool(one, args))]));
  let history = [];
  return asAgent(name, async (question) => {
    const messages = [{ role: "system", content: instructions }, ...history, { role: "user", content: question }];
    for (;;) {
      const request = { model: "gpt-4.1-mini", messages: [...messages], ...(tools.length ? { tools } : {}) };
      const message = plan.stream ? await streamed(request) : (await client.chat.completions.create(request)).choices[0].message;
      messages.push(message);
      if (!message.tool_calls?.length) {
        history = messages.slice(1);
        return message.content;
      }
      for (const call of message.tool_calls) {
        let content;
        try {
          const result = await runs[call.function.name](JSON.parse(call.function.arguments));
          content = typeof result === "string" ? result : JSON.stringify(result);
        } catch (error) {
          if (error.name !== "OrderServiceError") throw error;
          content = `Error: ${error.message}`;
        }
        messages.push({ role: "tool", tool_call_id: call.id, content });
      }
    }
  });
}

async function streamed(request) {
  const message = { role: "assistant", content: null };
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })) {
    const delta = chunk.choices[0]?.delta ?? {};
    if (delta.content) message.content = (message.content ?? "") + delta.content;
    for (const call of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      const known = message.tool_calls[call.index] ??= { id: call.id, type: "function", function: { name: call.function.name, arguments: "" } };
      known.function.arguments += call.function.arguments ?? "";
    }
  }
  return message;
}

await play({
  set: `${SDK}-js`, scenarios: ALL.filter((one) => !["s5", "s10"].includes(one)), flush, versions,
  begin: (plan) => asRequest(plan, agent(plan)),
});
process.exit(0);
