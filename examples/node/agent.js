// An agent in Node.js that sends its spans to the sidecar, or to a Collector that forwards them to the sidecar.
//
//   otel-agenteval serve                                                   (in another terminal)
//   cd examples/node && npm install
//   OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:14318 node agent.js
//
// The model and the tool are scripts, so you don't need a key. The spans follow OpenTelemetry's GenAI conventions, like the spans
// of a real instrumentation.
const { context, trace, SpanStatusCode } = require("@opentelemetry/api");
const { OTLPTraceExporter } = require("@opentelemetry/exporter-trace-otlp-http");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { BatchSpanProcessor, NodeTracerProvider } = require("@opentelemetry/sdk-trace-node");

const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": process.env.OTEL_SERVICE_NAME || "trains-node" }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();
const tracer = trace.getTracer("trains");

const message = (role, ...parts) => ({ role, parts });
const text = (content) => ({ type: "text", content });

// --- scripted model and tool ------------------------------------------------------------------------------------------------

const departures = { Basel: "06:28 and 08:28" };

function model(messages) {
  const result = messages.at(-1).parts.find((part) => part.type === "tool_call_response");
  if (!result) {
    const station = messages[0].parts[0].content.match(/leave (\w+)/)[1];
    return message("assistant", { type: "tool_call", id: "call_1", name: "departures", arguments: { station } });
  }
  return message("assistant", text(result.response ? `Trains leave at ${result.response}.` : "Trains leave at 09:15."));
}

// --- the agent, instrumented ------------------------------------------------------------------------------------------------

const inSpan = (name, attributes, work) =>
  tracer.startActiveSpan(name, { attributes }, (span) => {
    try {
      return work(span);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: error.message }).setAttribute("error.type", error.name);
      return undefined;
    } finally {
      span.end();
    }
  });

const chat = (messages) =>
  inSpan("chat scripted", { "gen_ai.operation.name": "chat", "gen_ai.request.model": "scripted" }, (span) => {
    const said = model(messages);
    const finish = said.parts[0].type === "tool_call" ? "tool_call" : "stop";
    span.setAttributes({
      "gen_ai.input.messages": JSON.stringify(messages),
      "gen_ai.output.messages": JSON.stringify([{ ...said, finish_reason: finish }]),
      "gen_ai.response.finish_reasons": [finish],
    });
    return said;
  });

const use = (call) =>
  inSpan(
    `execute_tool ${call.name}`,
    {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": call.name,
      "gen_ai.tool.call.id": call.id,
      "gen_ai.tool.call.arguments": JSON.stringify(call.arguments),
    },
    (span) => {
      const found = departures[call.arguments.station];
      if (!found) throw new RangeError(`no such station: ${call.arguments.station}`);
      span.setAttribute("gen_ai.tool.call.result", JSON.stringify(found));
      return found;
    },
  );

const ask = (question) =>
  inSpan("invoke_agent timetable", { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "timetable" }, () => {
    const messages = [message("user", text(question))];
    for (;;) {
      const said = chat(messages);
      messages.push(said);
      const call = said.parts.find((part) => part.type === "tool_call");
      if (!call) return said.parts[0].content;
      messages.push(message("tool", { type: "tool_call_response", id: call.id, response: use(call) }));
    }
  });

console.log(ask("When do trains leave Basel?"));
console.log(ask("When do trains leave Atlantis?")); // the tool fails, and the answer is made up
provider.shutdown();
