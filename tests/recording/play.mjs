// Plays the scenarios of stage.py with an agent written in JavaScript. Copy it beside a runner into a folder that has the
// runner's packages (`npm i …`, named in each runner), then: STAGE=http://127.0.0.1:8471 node run_X.mjs [SCENARIO…]
export const STAGE = process.env.STAGE ?? "http://127.0.0.1:8471";
export const OPENAI = `${STAGE}/v1`;
export const TRACES = `${STAGE}/v1/traces`;
process.env.OPENAI_API_KEY ??= "sk-none";
process.env.OPENAI_BASE_URL ??= OPENAI;
process.env.GEMINI_API_KEY ??= "none";
process.env.ANTHROPIC_API_KEY ??= "none";

export const TOOLS = {
  get_weather: ["The weather in a city now.", { city: "string" }],
  convert_currency: ["Convert an amount of US dollars.", { amount: "number", currency: "string" }],
  lookup_order: ["Where an order is.", { order_id: "string" }],
  check_job: ["The state of a job.", { job_id: "string" }],
};
export const SYSTEM = "You are a helpful assistant. Use the tools.";
export const SPECIALIST = "You are a travel specialist.";

async function post(path, body) {
  const answer = await fetch(STAGE + path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  return [answer.status, await answer.json()];
}

/** A tool's body: what the stage says, or the error it wants raised. */
export async function callTool(name, args) {
  const [status, body] = await post(`/tools/${name}`, args);
  if (status === 200) return body.result;
  const error = new Error(body.message);
  error.name = body.error_type;
  throw error;
}

export const jsonSchema = (fields) => ({
  type: "object", properties: Object.fromEntries(Object.entries(fields).map(([key, type]) => [key, { type }])), required: Object.keys(fields),
});

/** The parameters of a tool as a zod schema. */
export const zodSchema = (z, fields) => z.object(Object.fromEntries(Object.entries(fields).map(([key, type]) => [key, z[type]()])));

/**
 * Play a set. `begin(plan, scenario)` makes an agent for one recording and returns `(text) => answer`, called once a turn;
 * `flush()` sends what the exporters hold.
 */
export async function play({ set, scenarios, begin, flush, ...said }) {
  const only = process.argv.slice(2);
  for (const scenario of scenarios.filter((name) => !only.length || only.includes(name))) {
    const [, plan] = await post("/control/start", { set, scenario });
    const ask = await begin(plan, scenario);
    for (const [index, turn] of plan.turns.entries()) {
      await post("/control/turn", { index });
      let end;
      try {
        end = { answer: await ask(turn.user_input, index) };
      } catch (error) {
        if (process.env.DEBUG) console.error(error);
        end = { error: { type: error?.name ?? "Error", message: String(error?.message ?? error) } };
      }
      await flush();
      await post("/control/answer", end);
      if (end.error) console.log(`  ${scenario}: ${end.error.type}: ${end.error.message.slice(0, 150)}`);
    }
    await flush();
    console.log(set, scenario, JSON.stringify((await post("/control/finish", said))[1]));
  }
}

export const ALL = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s9b", "s10", "s10b", "s11"];
