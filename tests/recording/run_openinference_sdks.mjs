// OpenInference for the providers' own SDKs. SDK=anthropic (@arizeai/openinference-instrumentation-anthropic 0.2.8, @anthropic-ai/sdk 1.12.0)
// | openai (@arizeai/openinference-instrumentation-openai 4.2.7, openai 6.49.0) | responses (the same, Responses API);
// @arizeai/openinference-core 2.7.1, @opentelemetry/sdk-trace-node 2.12.
// MODE=span (the application has a span around each request) | bare (it has none) | traced (the core's traceAgent and traceTool).
import { context } from "@opentelemetry/api";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { setSession, traceAgent, traceTool } from "@arizeai/openinference-core";
import { ALL, OPENAI, SPECIALIST, STAGE, SYSTEM, TOOLS, TRACES, callTool, jsonSchema, play } from "./play.mjs";

const { SDK = "anthropic", MODE = "span" } = process.env;
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }))] });
provider.register();
const tracer = provider.getTracer("acme-support");

const describe = (name) => name in TOOLS ? TOOLS[name] : ["Asks the travel specialist.", { task: "string" }];
let ask; // one request: (system, messages, tools, stream) => {text, calls: [{id, name, input}], message, results: (list) => messages}
if (SDK === "anthropic") {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const { AnthropicInstrumentation } = await import("@arizeai/openinference-instrumentation-anthropic");
  const instrumentation = new AnthropicInstrumentation();
  instrumentation.manuallyInstrument(Anthropic);
  instrumentation.setTracerProvider(provider);
  const client = new Anthropic({ baseURL: STAGE, maxRetries: 0 });
  ask = async (system, messages, names, stream) => {
    const tools = names.map((name) => ({ name, description: describe(name)[0], input_schema: jsonSchema(describe(name)[1]) }));
    const request = { model: "claude-sonnet-4-5", max_tokens: 1024, system, messages, ...(tools.length ? { tools } : {}) };
    let answer = stream ? undefined : await client.messages.create(request);
    if (stream) {
      const content = [];
      for await (const event of await client.messages.create({ ...request, stream: true })) {
        if (event.type === "content_block_start") content.push({ ...event.content_block, json: "" });
        if (event.type === "content_block_delta" && event.delta.type === "text_delta") content.at(-1).text += event.delta.text;
        if (event.type === "content_block_delta" && event.delta.type === "input_json_delta") content.at(-1).json += event.delta.partial_json;
      }
      answer = { content: content.map(({ json, ...block }) => block.type === "tool_use" ? { ...block, input: JSON.parse(json || "{}") } : block) };
    }
    return {
      text: answer.content.filter((block) => block.type === "text").map((block) => block.text).join(""),
      calls: answer.content.filter((block) => block.type === "tool_use"),
      messages: (results) => [{ role: "assistant", content: answer.content },
        { role: "user", content: results.map(([call, text, failed]) => ({ type: "tool_result", tool_use_id: call.id, content: text, ...(failed ? { is_error: true } : {}) })) }],
    };
  };
} else {
  const { default: OpenAI } = await import("openai");
  const { OpenAIInstrumentation } = await import("@arizeai/openinference-instrumentation-openai");
  const instrumentation = new OpenAIInstrumentation();
  instrumentation.manuallyInstrument(OpenAI);
  instrumentation.setTracerProvider(provider);
  const client = new OpenAI({ baseURL: OPENAI, maxRetries: 0 });
  const read = (calls) => calls.map((call) => ({ id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) }));
  ask = SDK === "openai" ? async (system, messages, names, stream) => {
    const tools = names.map((name) => ({ type: "function", function: { name, description: describe(name)[0], parameters: jsonSchema(describe(name)[1]) } }));
    const request = { model: "gpt-4.1-mini", messages: [{ role: "system", content: system }, ...messages], ...(tools.length ? { tools } : {}) };
    let message;
    if (stream) {
      message = { role: "assistant", content: null };
      for await (const chunk of await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })) {
        const delta = chunk.choices[0]?.delta ?? {};
        if (delta.content) message.content = (message.content ?? "") + delta.content;
        for (const call of delta.tool_calls ?? []) {
          message.tool_calls ??= [];
          const known = message.tool_calls[call.index] ??= { id: call.id, type: "function", function: { name: call.function.name, arguments: "" } };
          known.function.arguments += call.function.arguments ?? "";
        }
      }
    } else {
      message = (await client.chat.completions.create(request)).choices[0].message;
    }
    return { text: message.content, calls: read(message.tool_calls ?? []),
      messages: (results) => [message, ...results.map(([call, content]) => ({ role: "tool", tool_call_id: call.id, content }))] };
  } : async (instructions, input, names, stream) => {
    const tools = names.map((name) => ({ type: "function", name, description: describe(name)[0], parameters: jsonSchema(describe(name)[1]) }));
    const request = { model: "gpt-4.1-mini", instructions, input, ...(tools.length ? { tools } : {}) };
    let answer = stream ? undefined : await client.responses.create(request);
    if (stream) for await (const event of await client.responses.create({ ...request, stream: true })) if (event.type === "response.completed") answer = event.response;
    const calls = answer.output.filter((item) => item.type === "function_call");
    const text = answer.output.filter((item) => item.type === "message").flatMap((item) => item.content).map((part) => part.text).join("");
    return { text, calls: calls.map((call) => ({ id: call.call_id, name: call.name, input: JSON.parse(call.arguments) })),
      messages: (results) => [...answer.output, ...results.map(([call, output]) => ({ type: "function_call_output", call_id: call.id, output }))] };
  };
}

async function loop(system, messages, names, stream, tools) {
  for (;;) {
    const answer = await ask(system, messages, names, stream);
    if (!answer.calls.length) {
      messages.push({ role: "assistant", content: answer.text });
      return answer.text;
    }
    const results = [];
    for (const call of answer.calls) {
      try {
        const result = await tools(call.name)(call.input);
        results.push([call, typeof result === "string" ? result : JSON.stringify(result), false]);
      } catch (error) {
        results.push([call, `Error: ${error.message}`, true]);
      }
    }
    messages.push(...answer.messages(results));
  }
}

function begin(plan) {
  const messages = [];
  const tool = (name) => {
    const run = name === plan.sub_agent
      ? traced("agent", name, ({ task }) => loop(SPECIALIST, [{ role: "user", content: task }], plan.tools, false, tool))
      : traced("tool", name, (input) => callTool(name, input));
    return run;
  };
  const traced = (kind, name, run) => MODE !== "traced" ? run : kind === "tool" ? traceTool(run, { name, tracer }) : traceAgent(run, { name, tracer });
  const names = plan.sub_agent ? [plan.sub_agent] : plan.tools;
  const answer = traced("agent", "support", async (text) => {
    const found = plan.documents.map((item) => item.content).join("\n");
    messages.push({ role: "user", content: found ? `Answer from these documents:\n${found}\n\nQuestion: ${text}` : text });
    return await loop(SYSTEM, messages, names, plan.stream, tool);
  });
  const spanned = MODE !== "span" ? answer : (text) => tracer.startActiveSpan("handle_request", async (span) => {
    try { return await answer(text); } finally { span.end(); }
  });
  return (text) => plan.conversation_id ? context.with(setSession(context.active(), { sessionId: plan.conversation_id }), () => spanned(text)) : spanned(text);
}

await play({
  set: `openinference-${SDK}-js-${MODE}`, scenarios: ALL.filter((one) => one !== "s5" && (MODE === "traced" || one !== "s7")), begin,
  flush: () => provider.forceFlush(),
});
process.exit(0);
