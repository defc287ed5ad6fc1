// Effect AI: effect 3, @effect/ai 0.37.0, @effect/ai-openai 0.41.0 (Responses API), @effect/opentelemetry (NodeSdk), a Chat and a Toolkit;
// it writes no content. @opentelemetry/sdk-trace-node 2, @opentelemetry/exporter-trace-otlp-proto 0.203.
import { Chat, Prompt, Tool, Toolkit } from "@effect/ai";
import { OpenAiClient, OpenAiLanguageModel } from "@effect/ai-openai";
import { NodeSdk } from "@effect/opentelemetry";
import { FetchHttpClient } from "@effect/platform";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { Cause, Effect, Exit, Layer, ManagedRuntime, Redacted, Schema } from "effect";
import { ALL, OPENAI, SPECIALIST, SYSTEM, TOOLS, TRACES, callTool, play } from "./play.mjs";

const processor = new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }));
const client = OpenAiClient.layer({ apiKey: Redacted.make("x"), apiUrl: OPENAI }).pipe(Layer.provide(FetchHttpClient.layer));
const runtime = ManagedRuntime.make(Layer.mergeAll(
  OpenAiLanguageModel.layer({ model: "gpt-4.1-mini" }).pipe(Layer.provide(client)),
  NodeSdk.layer(() => ({ resource: { serviceName: "shop" }, spanProcessor: processor })),
));
const KINDS = { string: Schema.String, number: Schema.Number };

function agent(plan, name = "assistant", system = SYSTEM) {
  const inner = plan.sub_agent ? agent({ ...plan, sub_agent: null }, plan.sub_agent, SPECIALIST) : null;
  const fields = inner ? { [plan.sub_agent]: ["Ask the travel specialist.", { task: "string" }] } : Object.fromEntries(plan.tools.map((one) => [one, TOOLS[one]]));
  const toolkit = Toolkit.make(...Object.entries(fields).map(([one, [description, parameters]]) =>
    Tool.make(one, { description, success: Schema.Any, failure: Schema.String, failureMode: "return", parameters: Object.fromEntries(Object.entries(parameters).map(([key, type]) => [key, KINDS[type]])) })));
  const handlers = toolkit.toLayer(Object.fromEntries(Object.keys(fields).map((one) => [one, (args) =>
    inner ? inner(args.task).pipe(Effect.mapError(String)) : Effect.tryPromise({ try: () => callTool(one, args), catch: (error) => error.message })])));
  const chat = Effect.runSync(Chat.fromPrompt(Prompt.make([{ role: "system", content: system }])));
  return (text) => Effect.gen(function* () {
    let response = yield* chat.generateText({ prompt: text, toolkit });
    while (response.toolCalls.length) response = yield* chat.generateText({ prompt: [], toolkit });
    return response.text;
  }).pipe(Effect.provide(handlers), Effect.withSpan(`${name}.answer`, { attributes: plan.conversation_id ? { "session.id": plan.conversation_id } : {} }));
}

await play({
  set: "effect-ai", scenarios: ALL.filter((one) => !["s5", "s10", "s10b"].includes(one)), no_agents: true,
  begin: (plan) => {
    const run = agent(plan);
    return async (text) => {
      const exit = await runtime.runPromiseExit(run(text));
      if (Exit.isSuccess(exit)) return exit.value;
      const error = Cause.squash(exit.cause);
      throw Object.assign(new Error(error.message), { name: error._tag ?? error.name });
    };
  },
  flush: () => processor.forceFlush(), versions: { "@effect/ai": "0.37.0" },
});
process.exit(0);
