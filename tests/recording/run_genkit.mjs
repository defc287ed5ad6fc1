// Genkit (JS): genkit 1.42, @genkit-ai/compat-oai 1.42, @genkit-ai/google-genai 1.42, @opentelemetry/exporter-trace-otlp-proto 0.52.
// MODE=flow (a flow around generate, retriever; OpenAI plugin) | agent (beta's agents and prompts; Google's plugin)
//   | chat (sessions as they were until 1.2x: genkit 1.20, @genkit-ai/google-genai 1.20, a prompt as a tool).
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { z } from "genkit";
import { genkit } from "genkit/beta";
import { googleAI } from "@genkit-ai/google-genai";
import { enableTelemetry, flushTracing } from "genkit/tracing";
import { ALL, OPENAI, SPECIALIST, STAGE, SYSTEM, TOOLS, TRACES, callTool, play, zodSchema } from "./play.mjs";

const mode = process.env.MODE ?? "flow";
const processor = new BatchSpanProcessor(new OTLPTraceExporter({ url: TRACES }));
await enableTelemetry({ spanProcessors: [processor], metricReader: undefined });

const openAI = mode === "flow" ? (await import("@genkit-ai/compat-oai/openai")).openAI : undefined;
const plugins = mode === "flow" ? [openAI({ baseURL: OPENAI, maxRetries: 0 })] : [googleAI({ baseUrl: STAGE, apiKey: "none" })];
const model = mode === "flow" ? "openai/gpt-4.1-mini" : "googleai/gemini-2.5-flash";
const ai = genkit({ plugins, model });
const tools = Object.entries(TOOLS).map(([name, [description, fields]]) =>
  ai.defineTool({ name, description, inputSchema: zodSchema(z, fields), outputSchema: z.any() }, (input) => callTool(name, input)));
const named = (names) => tools.filter((tool) => names.includes(tool.__action.name));
let documents = [];
const retriever = ai.defineRetriever({ name: "handbook" }, async () => ({
  documents: documents.map((item) => ({ content: [{ text: item.content }], metadata: { id: item.id, score: item.score } })) }));

const histories = new Map();
const chat = ai.defineFlow(
  { name: "assistant", inputSchema: z.any(), outputSchema: z.string() },
  async (input, { sendChunk }) => {
    const { message, sessionId, names, sub } = typeof input === "string" ? { message: input, names: Object.keys(TOOLS) } : { names: Object.keys(TOOLS), ...input };
    const docs = documents.length ? await ai.retrieve({ retriever, query: message }) : undefined;
    const request = { system: SYSTEM, prompt: message, messages: histories.get(sessionId), tools: [...named(names), ...(sub ? [sub] : [])], docs, maxTurns: 10 };
    let response;
    if (streaming) {
      const { stream, response: last } = ai.generateStream(request);
      for await (const chunk of stream) sendChunk(chunk.text);
      response = await last;
    } else {
      response = await ai.generate(request);
    }
    if (sessionId) histories.set(sessionId, response.messages.filter((one) => one.role !== "system"));
    return response.text;
  });
let streaming = false;

async function flow(plan) {
  documents = plan.documents;
  streaming = plan.stream;
  if (plan.sub_agent) {
    const specialist = ai.defineTool(
      { name: plan.sub_agent, description: "Asks the travel specialist.", inputSchema: z.object({ task: z.string() }), outputSchema: z.string() },
      async ({ task }) => (await ai.generate({ system: SPECIALIST, prompt: task, tools: named(plan.tools) })).text);
    const agent = ai.defineFlow({ name: "concierge", inputSchema: z.string(), outputSchema: z.string() },
      async (message) => (await ai.generate({ system: SYSTEM, prompt: message, tools: [specialist] })).text);
    return agent;
  }
  return async (text) => {
    const input = plan.conversation_id ? { message: text, sessionId: plan.conversation_id } : text;
    if (!plan.stream) return await chat(input);
    const running = chat.stream(input);
    for await (const _ of running.stream);
    return await running.output;
  };
}

let count = 0;
function agent(plan) {
  documents = plan.documents;
  const name = "assistant";
  let others = [];
  if (plan.sub_agent) {
    others = [ai.defineTool(
      { name: plan.sub_agent, description: "Asks the travel specialist.", inputSchema: z.object({ task: z.string() }), outputSchema: z.string() },
      async ({ task }) => (await ai.prompt(plan.sub_agent)({ task })).text)];
    ai.definePrompt({ name: plan.sub_agent, system: SPECIALIST, prompt: "{{task}}", input: { schema: z.object({ task: z.string() }) }, tools: named(plan.tools) });
  }
  count += 1;
  const made = ai.defineAgent({ name: count > 1 ? `${name}${count}` : name, system: SYSTEM, tools: [...named(plan.tools), ...others], maxTurns: 10 });
  const talk = made.chat(plan.conversation_id ? { state: { sessionId: plan.conversation_id, messages: [] } } : undefined);
  return async (text) => {
    if (plan.stream) {
      const turn = talk.sendStream(text);
      for await (const _ of turn.stream);
      const response = await turn.response;
      response.assertValid();
      return response.text;
    }
    const response = await talk.send(text);
    response.assertValid();
    return response.text;
  };
}

async function chats(plan) {
  documents = plan.documents;
  const others = [];
  if (plan.sub_agent) {
    const definition = { name: plan.sub_agent, description: "Hands over to the travel specialist.", system: SPECIALIST, tools: named(plan.tools), input: { schema: z.object({ task: z.string() }) } };
    others.push(ai.definePrompt(definition));
  }
  const session = ai.createSession(plan.conversation_id ? { sessionId: plan.conversation_id } : undefined);
  const talk = session.chat({ system: SYSTEM, tools: [...named(plan.sub_agent ? [] : plan.tools), ...others], maxTurns: 10 });
  return async (text) => {
    const docs = documents.length ? await ai.retrieve({ retriever, query: text }) : undefined;
    if (!plan.stream) return (await talk.send({ prompt: text, docs })).text;
    const { stream, response } = talk.sendStream(text);
    for await (const _ of stream);
    return (await response).text;
  };
}

await play({
  set: `genkit-js-${mode}`, scenarios: mode === "agent" ? ALL.filter((one) => one !== "s5") : ALL,
  begin: { flow, agent, chat: chats }[mode], flush: async () => { await flushTracing(); await processor.forceFlush(); },
  versions: { genkit: mode === "chat" ? "1.20.0" : "1.42.0" },
});
process.exit(0);
