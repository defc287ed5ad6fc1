// An agent in Node.js with the official SDK: turns of one tool call and two model calls, exported over OTLP.
// Usage: node-with-otel node_agent.js http|grpc URL TURNS
const { trace, context, SpanStatusCode } = require("@opentelemetry/api");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { BatchSpanProcessor, NodeTracerProvider } = require("@opentelemetry/sdk-trace-node");

const [protocol, url, turns] = process.argv.slice(2);
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${protocol}`);
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "node-shop" }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url }))],
});
const tracer = provider.getTracer("node-shop.agent");

const said = (role, ...parts) => ({ role, parts });
const text = (content) => ({ type: "text", content });

function chat(within, input, output, finish) {
  tracer
    .startSpan(
      "chat m-1",
      {
        attributes: {
          "gen_ai.operation.name": "chat",
          "gen_ai.request.model": "m-1",
          "gen_ai.input.messages": JSON.stringify(input),
          "gen_ai.output.messages": JSON.stringify([{ ...output, finish_reason: finish }]),
          "gen_ai.usage.input_tokens": 40,
          "gen_ai.usage.output_tokens": 9,
        },
      },
      within,
    )
    .end();
}

function turn(number) {
  const root = tracer.startSpan("invoke_agent shop", {
    attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop" },
  });
  const within = trace.setSpan(context.active(), root);
  const user = said("user", text(`Is order ${number} on its way?`));
  const call = { type: "tool_call", id: `call_${number}`, name: "order_status", arguments: { order: number } };
  chat(within, [user], said("assistant", call), "tool_call");
  const fails = number % 2 === 1;
  const tool = tracer.startSpan(
    "execute_tool order_status",
    {
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "order_status",
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.call.arguments": JSON.stringify(call.arguments),
      },
    },
    within,
  );
  if (fails) tool.setStatus({ code: SpanStatusCode.ERROR, message: "time-out" }).setAttribute("error.type", "TimeoutError");
  else tool.setAttribute("gen_ai.tool.call.result", JSON.stringify({ status: "shipped" }));
  tool.end();
  const result = { type: "tool_call_response", id: call.id, response: fails ? "Error: time-out" : "shipped" };
  chat(within, [user, said("assistant", call), said("tool", result)], said("assistant", text("Yes, it was shipped.")), "stop");
  root.end();
}

for (let number = 0; number < Number(turns); number++) turn(number);
provider.shutdown().then(
  () => console.log("done"),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
