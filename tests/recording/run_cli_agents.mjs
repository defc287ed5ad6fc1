// Agents of the command line, run headless with the telemetry that their own docs switch on; the stage's tools are an MCP
// server (this file with --mcp). One at a time in CLI=codex | gemini | qwen | copilot, with BIN=its program:
// @openai/codex 0.171.0, @google/gemini-cli 0.61.0, @qwen-code/qwen-code 0.24.4, @github/copilot 1.0.102.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ALL, OPENAI, STAGE, TOOLS, callTool, jsonSchema, play } from "./play.mjs";

const { CLI, BIN } = process.env;
const SERVER = { command: process.execPath, args: [import.meta.filename, "--mcp"], env: { STAGE, CLI } };

/** The tools, as an MCP server on standard input and output. */
async function serve() {
  const answers = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "shop", version: "1" } }),
    "tools/list": () => ({ tools: Object.entries(TOOLS).map(([name, [description, fields]]) => ({ name, description, inputSchema: jsonSchema(fields) })) }),
    "tools/call": async ({ name, arguments: args }) => {
      try {
        const result = await callTool(name, args);
        return { content: [{ type: "text", text: typeof result === "string" ? result : JSON.stringify(result) }] };
      } catch (error) {
        return { content: [{ type: "text", text: `${error.name}: ${error.message}` }], isError: true };
      }
    },
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: await (answers[method] ?? (() => ({})))(params) }) + "\n");
  }
  process.exit(0);
}
if (process.argv.includes("--mcp")) await serve();

const lines = (out) => out.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
const whole = (out) => JSON.parse(out.slice(out.indexOf("{"), out.search(/^\}/m) + 1));
const put = (path, content) => { mkdirSync(join(path, ".."), { recursive: true }); writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content)); };

// Each: what the model calls a tool, its settings, its arguments, and the answer in what it prints.
const AGENTS = {
  codex: {
    set: "codex-cli", unsent: ["s9", "s9b", "s11"], tool: (name) => ({ name, namespace: "mcp__shop" }), tool_prefix: "",
    setup: (home) => put(join(home, ".codex/config.toml"), `
model = "gpt-4.1-mini"
model_provider = "stage"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.stage]
name = "stage"
base_url = "${OPENAI}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[mcp_servers.shop]
command = "${SERVER.command}"
args = ${JSON.stringify(SERVER.args)}
env = { STAGE = "${STAGE}", CLI = "codex" }
[otel]
environment = "prod"
log_user_prompt = true
exporter = { otlp-http = { endpoint = "${STAGE}/v1/logs", protocol = "json" } }
trace_exporter = { otlp-http = { endpoint = "${STAGE}/v1/traces", protocol = "json" } }
metrics_exporter = "none"
`),
    run: (text, later) => ["exec", ...(later ? ["resume", "--last"] : []), "--json", "--skip-git-repo-check", text],
    answer: (out) => lines(out).filter((item) => item.item?.type === "agent_message").at(-1).item.text,
  },
  gemini: {
    set: "gemini-cli", unsent: ["s9", "s9b", "s11"], tool: (name) => ({ name: `mcp_shop_${name}` }), tool_prefix: "mcp_shop_",
    setup: (home) => put(join(home, ".gemini/settings.json"), {
      security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } }, mcpServers: { shop: { ...SERVER, trust: true } }, general: { maxAttempts: 1, enableAutoUpdate: false },
      telemetry: { enabled: true, traces: true, target: "local", otlpEndpoint: STAGE, otlpProtocol: "http", logPrompts: true, useCollector: true },
    }),
    env: { GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: STAGE, GEMINI_CLI_NO_RELAUNCH: "true" },
    run: (text, later) => [...(later ? ["--resume", "latest"] : []), "--skip-trust", "-y", "-m", "gemini-2.5-flash", "-o", "json", "-p", text],
    answer: (out) => whole(out).response,
  },
  qwen: {
    set: "qwen-code", tool: (name) => ({ name: `mcp__shop__${name}` }), tool_prefix: "mcp__shop__",
    setup: (home) => put(join(home, ".qwen/settings.json"), {
      mcpServers: { shop: { ...SERVER, trust: true } }, general: { enableAutoUpdate: false }, memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false }, security: { auth: { selectedType: "openai" } }, model: { generationConfig: { maxRetries: 0 } },
      telemetry: { enabled: true, target: "local", otlpEndpoint: STAGE, otlpProtocol: "http", logPrompts: true, includeSensitiveSpanAttributes: true },
    }),
    env: { OPENAI_MODEL: "gpt-4.1-mini" },
    run: (text, later) => [...(later ? ["--continue"] : []), "-y", "-o", "json", "-p", text],
    answer: (out) => JSON.parse(out.split("\n").find((line) => line.startsWith("[{"))).at(-1).result,
  },
  copilot: {
    set: "copilot-cli", tool: (name) => ({ name: `shop-${name}` }), tool_prefix: "shop-",
    setup: (home) => put(join(home, ".copilot/mcp-config.json"), { mcpServers: { shop: { type: "local", ...SERVER, tools: ["*"] } } }),
    env: {
      COPILOT_PROVIDER_BASE_URL: OPENAI, COPILOT_MODEL: "gpt-4.1-mini", COPILOT_OFFLINE: "true", OTEL_EXPORTER_OTLP_ENDPOINT: STAGE,
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true", COPILOT_AUTO_UPDATE: "false",
    },
    run: (text, later) => [...(later ? ["--continue"] : []), "-s", "--allow-all-tools", ...(later ? [] : ["--trust-folder"]), "-p", text],
    answer: (out) => out.trim(),
  },
};
const agent = AGENTS[CLI];

function begin(plan) {
  const home = mkdtempSync(join(tmpdir(), "cli-"));
  const folder = join(home, "shop");
  mkdirSync(folder);
  agent.setup(home);
  const env = { PATH: process.env.PATH, HOME: home, OPENAI_API_KEY: "sk-none", OPENAI_BASE_URL: OPENAI, NO_COLOR: "1", ...agent.env };
  return async (text, index) => {
    const steps = plan.all_steps[index].map((step) => ({ ...step, tool_calls: step.tool_calls?.map((call) => ({ ...call, ...agent.tool(call.name) })) ?? [] }));
    await fetch(`${STAGE}/__script`, { method: "POST", body: JSON.stringify({ steps, salt: text }) });
    const out = await new Promise((resolve, reject) => {
      const child = execFile(BIN, agent.run(text, index > 0), { cwd: folder, env, timeout: 120_000 }, (error, stdout, stderr) => {
        if (process.env.DEBUG) console.error(stdout, stderr);
        return error ? reject(new Error((stderr || stdout).slice(-300))) : resolve(stdout);
      });
      child.stdin.end();
    });
    const answer = agent.answer(out);
    if (index === plan.turns.length - 1) rmSync(home, { recursive: true, force: true });
    return answer;
  };
}

// Codex and Gemini send nothing of a run that fails.
const scenarios = ALL.filter((one) => !["s5", "s7", "s10", ...(agent.unsent ?? [])].includes(one));
await play({ set: agent.set, scenarios, begin, flush: async () => {}, no_agents: true, no_session: true, tool_prefix: agent.tool_prefix });
process.exit(0);
