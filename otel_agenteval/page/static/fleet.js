// All agents: estimates with intervals, series over time, changes, and the number of turns behind each value.
import { Chart, Interval, colourOf } from "./charts.js";
import { Link, Pick, Wait, cost, count, dollars, go, html, isWorse, link, modeName, number, percent, points, seconds, sumsOf, time, useGet } from "./core.js";
import { Filters } from "./filters.js";

const BY = [["agent", "agent"], ["version", "version"], ["model", "model"], ["service", "service"]];

export function Fleet({ address, facets }) {
  const { query } = address;
  const by = query.get("by") ?? "agent";
  const asked = sumsOf(query);
  asked.set("by", by);
  const estimates = useGet(`estimates?${asked}`);
  const series = useGet(`series?${asked}`);
  const lately = sumsOf(query);
  const headline = useGet(`headline?${lately}`);
  lately.delete("metric");
  if (!lately.has("since")) lately.set("since", "48h"); // the halves are the last day and the day before
  const modes = useGet(facets?.causes ? `failure-modes?${lately}` : null);
  const change = (value) => go(`${link("/", query)}${link("/", query).includes("?") ? "&" : "?"}by=${value}`);
  if (facets?.since === null) return html`<h1>Fleet</h1><${NoTurns} />`;
  return html`<h1>Fleet</h1>
    <${Filters} address=${address} facets=${facets} lists=${false} />
    <${Wait} of=${estimates}>${(found) => html`
      ${headline.value && html`<${Headline} found=${found} halves=${headline.value} facets=${facets} query=${query} />`}
      <${Attention} found=${found} changes=${series.value?.changes ?? []} modes=${modes.value?.modes ?? []} lately=${lately} facets=${facets} query=${query} />
      <div class="bar"><span id="by-label">Grouped by</span> <div class="tabs" role="group" aria-labelledby="by-label">${BY.map(([value, text]) => html`<button type="button" aria-pressed=${by === value} onClick=${() => change(value)}>${text}</button>`)}</div></div>
      <${Groups} found=${found} by=${by} query=${query} />
      <${Wait} of=${series}>${(over) => html`<${Multiples} found=${found} over=${over} by=${by} query=${query} /><${Changes} title="Other changes" changes=${over.changes.filter((one) => one.verdict !== "worse")} query=${query} />`}</${Wait}>
      <${Table} found=${found} by=${by} query=${query} />
      ${found.hours_not_summed > 2 && html`<p class="dim">${count(found.hours_not_summed)} hours aren't summarized yet, so this view is slower, but complete.</p>`}`}
    </${Wait}>`;
}

function NoTurns() {
  return html`<section class="empty"><p>The store has no turns yet. A turn is stored when the agent has answered and its trace is closed, by default after about 10 seconds.</p>
    <p>Send the agent's spans to the sidecar: set <code>OTEL_EXPORTER_OTLP_ENDPOINT</code> to its OTLP address, by default port 14317 for gRPC and 14318 for HTTP. To see example turns in a terminal, run <code>otel-agenteval demo</code>. <${Link} to="/health">Health</${Link}> shows what has arrived.</p></section>`;
}

// The whole time range and its two halves. Changes are shown without a verdict, because they aren't tested.
function Headline({ found, halves, facets, query }) {
  const { all, before, after } = halves;
  const turns = allTurns(found);
  const sum = (key) => found.groups.reduce((total, one) => (one[key] === null ? total : (total ?? 0) + one[key]), null);
  const spent = found.estimates.reduce((total, one) => (one.cost_usd === null ? total : (total ?? 0) + one.cost_usd), null);
  const pair = (key, text) => (before.turns && after.turns && before[key] !== null && after[key] !== null ? `${text(before[key])} → ${text(after[key])}` : "");
  const rows = [
    ["turns", html`<${Link} to=${link("/turns", query)}>${count(turns)}</${Link}>`, halves.is_all ? pair("turns", count) : ""],
    ["with a failed score", all.failed === null ? "–" : html`<${Link} to=${link("/turns", query, { outcome: "fail" })}>${percent(all.failed, 1)}</${Link}>`, pair("failed", (x) => percent(x, 1))],
    ["duration, median", seconds(all.p50_s), pair("p50_s", seconds)],
    ["duration, 95th percentile", seconds(all.p95_s), pair("p95_s", seconds)],
    ["cost", dollars(sum("cost_usd")), pair("cost_usd", dollars) && `${pair("cost_usd", dollars)} per turn`],
    ["cost of judges", dollars(spent), typeof facets?.budget_usd === "number" ? html`<${Link} to="/health">${dollars(facets.budget_usd)} of the budget left</${Link}>` : ""],
  ];
  return html`<section aria-label="Headline"><dl class="headline">${rows.map(([name, value, change]) => html`<div><dt>${name}</dt><dd>${value}</dd><dd class="dim small">${change}</dd></div>`)}</dl>
    ${before.turns > 0 && after.turns > 0 && html`<p class="dim small">Arrows show the change from the first to the second half of the time range, divided at ${time(halves.middle).slice(0, 16)} UTC${halves.is_all ? "" : `, of the latest ${count(all.turns)} turns`}.</p>`}</section>`;
}

const nameOf = (group, by) => group ?? `no ${by}`;
const differences = (query, changes) => link("/differences", sumsOf(query), changes);
const only = (by, group) => (group === null || group === "(others)" ? {} : { [by]: group });

function Groups({ found, by, query }) {
  const judged = (group) => {
    const most = Math.max(0, ...found.estimates.filter((one) => one.group === group && one.kind !== "code").map((one) => one.scored));
    return most;
  };
  const spent = (group) => found.estimates.reduce((sum, one) => (one.group === group && one.cost_usd !== null ? (sum ?? 0) + one.cost_usd : sum), null);
  const places = found.groups.map((group) => group.group).slice(0, 6).sort();
  return html`<ul class="cards">${found.groups.map((group) => html`<li class=${colourOf(places.indexOf(group.group))}>
    <h2><span class="dot" aria-hidden="true"></span><${Pick} query=${query} path="/" name=${by} value=${group.group}>${nameOf(group.group, by)}</${Pick}></h2>
    <dl>
      <div><dt>turns</dt><dd><${Link} to=${link("/turns", query, only(by, group.group))}>${count(group.turns)}</${Link}></dd></div>
      <div><dt>ended with an error</dt><dd><${Link} to=${link("/turns", query, { ...only(by, group.group), error: "true" })}>${percent(group.turns ? group.errors / group.turns : null, 1)}</${Link}></dd></div>
      <div><dt>mean duration</dt><dd>${seconds(group.duration_s)}</dd></div>
      <div><dt>tokens</dt><dd>${count(group.tokens)}</dd></div>
      <div><dt>cost</dt><dd>${cost(group)}</dd></div>
      <div><dt>judged</dt><dd>${percent(group.turns ? judged(group.group) / group.turns : null)}, ${dollars(spent(group.group))}</dd></div>
    </dl></li>`)}</ul>
    ${found.groups.length === 0 && html`<p class="empty">No turns match. <${Link} to="/">Remove all filters</${Link}></p>`}`;
}

// Areas of metrics by their names, in the order of the page.
const AREAS = [["Answer", null], ["Tools", /tool|step|plan|argument|handoff|workflow|agent/], ["Sources", /ungrounded|faithful|ground|context|recall|precision|relevan|mrr|hallucin/], ["Safety", /leak|injection|pii|privacy|toxic|bias|hate|violence|harm|sexual|policy|moderation|jailbreak/], ["Time and cost", /latency|cost|token|duration|energy|carbon|first_chunk/]];
const areaOf = (metric) => (AREAS.findLast(([, pattern]) => pattern?.test(metric)) ?? AREAS[0])[0];
const BETTER = { up: ["↑", "higher is better"], down: ["↓", "lower is better"], neutral: ["", "neither direction is better"] };

function Multiples({ found, over, by, query }) {
  const groups = found.groups.map((group) => group.group).slice(0, 6), places = [...groups].sort(); // colors that stay when the order changes
  const metrics = [...new Set(found.estimates.map((one) => one.metric))];
  const factsOf = new Map(found.estimates.map((one) => [`${one.metric} ${one.group}`, one]));
  const byMetric = new Map();
  for (const one of over.series) {
    if (!one.metric || !groups.includes(one.group)) continue;
    const facts = factsOf.get(`${one.metric} ${one.group}`), sampled = facts && (facts.scored < 0.98 * facts.turns || query.get("metric"));
    const points = sampled ? one.points : one.points.map(({ low, high, ...point }) => point);
    byMetric.set(one.metric, [...(byMetric.get(one.metric) ?? []), { name: nameOf(one.group, by), group: one.group, place: places.indexOf(one.group), points }]);
  }
  const chosen = query.get("metric");
  const shown = chosen ? metrics.filter((metric) => metric === chosen) : metrics;
  const releases = over.releases.filter((one) => one.at > over.since);
  const chart = (metric) => {
    const facts = found.estimates.find((one) => one.metric === metric), marks = over.changes.filter((change) => change.metric === metric), [sign, better] = BETTER[facts.direction] ?? BETTER.neutral;
    return html`<article><h3><${Link} to=${link("/", query, { metric })}><code>${metric}</code></${Link}> <span class="dim" title=${better} role="img" aria-label=${better}>${sign}</span>${marks.length > 0 && html` <span class="mark bad" title="changes were detected">${marks.length} changed</span>`}</h3>
      <${Chart} title=${`${metric}, ${better}`} lines=${byMetric.get(metric) ?? []} since=${over.since} until=${over.until} step=${over.step_s} unit=${facts.unit} marks=${marks} releases=${releases}
        width=${chosen ? 960 : 320} height=${chosen ? 260 : 104} zoom=${(since, until) => go(link("/", query, { since, until }))}
        to=${(point, line) => link("/turns", query, { ...only(by, line.group), metric, since: point.at, until: point.at + over.step_s })} /></article>`;
  };
  const noted = (metric) => over.changes.some((change) => change.metric === metric) || found.estimates.some((one) => one.metric === metric && (one.failed > 0 || one.errors > 0));
  const areas = AREAS.map(([area]) => [area, shown.filter((metric) => areaOf(metric) === area)]).filter(([, some]) => some.length);
  return html`<section aria-labelledby="over-time"><h2 id="over-time">Over time</h2>${shown.length > 0 && html`<p class="dim small">↑ higher is better, ↓ lower is better. Bands are 95 % intervals of sampled scores. Drag over a chart to zoom.</p>`}
    ${areas.map(([area, some]) => html`<details key=${area} open=${shown.length < 10 || some.some(noted)}><summary><h3 class="inline">${area}</h3> <span class="dim">${some.length === 1 ? "1 metric" : `${count(some.length)} metrics`}, ${some.some(noted) ? `${count(some.filter(noted).length)} with failures or changes` : "no failures"}</span></summary><div class=${`multiples ${chosen ? "one" : ""}`}>${some.map(chart)}</div></details>`)}</section>`;
}

// The problems to look at first. Sections without problems aren't shown.
function Attention({ found, changes, modes, lately, facets, query }) {
  const judged = (change) => found.estimates.some((one) => one.metric === change.metric && one.passed + one.failed > 0); // the metric has verdicts, so causes can be shown
  return html`<${MostFailures} found=${found} query=${query} critical /><${Changes} title="Changes for the worse" changes=${changes.filter((one) => one.verdict === "worse").sort((a, b) => judged(b) - judged(a) || a.at - b.at)} judged=${judged} query=${query} />
    <${Growing} modes=${modes.filter(isWorse)} query=${lately} /><${Warnings} facets=${facets} /><${MostFailures} found=${found} query=${query} />`;
}

function Growing({ modes, query }) {
  if (!modes.length) return null;
  return html`<section aria-labelledby="growing"><h2 id="growing">New and growing failure modes${query.get("since") === "48h" && " in the last 24 hours"}</h2><ul class="changes">${modes.slice(0, 5).map((one) => html`<li>
    <span class="mark warn">${one.trend}</span> <${Link} to=${link("/failure-modes", query, { mode: one.id })}><bdi>${modeName(one)}</bdi></${Link}> <span class="dim">${percent(one.rate, 1)} of all turns, change ${points(one.change[0])} … ${points(one.change[1])}</span></li>`)}
    ${modes.length > 5 && html`<li><${Link} to=${link("/failure-modes", query)}>${count(modes.length - 5)} more</${Link}></li>`}</ul></section>`;
}

// Judge budgets that are nearly used up, and traces that couldn't be read.
function Warnings({ facets }) {
  const { low_budgets: budgets = [], unread_traces: unread = 0 } = facets ?? {};
  if (!budgets.length && !unread) return null;
  const amount = (n, unit) => (unit === "usd" ? dollars(n) : `${count(n)} ${unit}`);
  return html`<section aria-labelledby="warnings"><h2 id="warnings">Warnings</h2><ul class="changes">
    ${budgets.map((one) => html`<li><span class="mark warn">judge budget</span> <${Link} to="/health">${amount(one.remaining, one.unit)} of ${amount(one.limit, one.unit)} left this ${one.window}</${Link}>${one.metric && html` for <code>${one.metric}</code>`}</li>`)}
    ${unread > 0 && html`<li><span class="mark warn">unread</span> <${Link} to="/health">${count(unread)} traces contained no turn or no text</${Link}></li>`}</ul></section>`;
}

const allTurns = (found) => found.groups.reduce((sum, one) => sum + one.turns, 0);

// Metrics with critical findings, or all metrics that fail, sorted by their share of all turns.
export function MostFailures({ found, query, critical = false }) {
  const all = allTurns(found), sums = new Map();
  for (const one of found.estimates) {
    const sum = sums.get(one.metric) ?? { failed: 0, scored: 0, failed_turns: 0, critical: 0 };
    for (const name in sum) sum[name] += one[name];
    sums.set(one.metric, sum);
  }
  const size = (sum) => (critical ? sum.critical : sum.failed_turns);
  const most = [...sums].filter(([, sum]) => (critical ? sum.critical : sum.failed)).sort(([, a], [, b]) => size(b) - size(a)).slice(0, 5);
  if (!most.length) return null;
  const id = critical ? "critical" : "failures";
  const share = (sum) => (critical ? `${count(sum.critical)} of ${count(all)} turns` : sum.failed_turns > 1.02 * sum.failed ? `about ${percent(sum.failed_turns / all, 1)} of ${count(all)} turns, from ${count(sum.scored)} scored` : `${percent(sum.failed / all, 1)} of ${count(all)} turns${sum.scored < 0.98 * all ? `, ${count(sum.scored)} scored` : ""}`);
  return html`<section aria-labelledby=${id}><h2 id=${id}>${critical ? "Critical findings" : "Most failures"}</h2><ul class="changes">${most.map(([metric, sum]) => html`<li>
    <span class="mark bad">${critical ? "critical" : `${count(sum.failed)} failed`}</span> <${Link} to=${critical ? link("/turns", query, { metric, severity: "critical" }) : differences(query, { metric })}><code>${metric}</code></${Link}> <span class="dim">${share(sum)}</span></li>`)}</ul>
    ${!critical && html`<p><${Link} to=${link("/failure-modes", sumsOf(query))}>Failure modes of all failed turns</${Link}></p>`}</section>`;
}

// Metrics without a verdict have no failed turns to compare, so their changes link to the versions or the turns.
function Changes({ title, changes, query, judged = () => true }) {
  if (!changes.length) return null;
  const id = title.replaceAll(" ", "-");
  const to = (change) => (judged(change) ? differences(query, { metric: change.metric, agent: change.agent, since: change.since }) : change.version_before ? `/compare?${new URLSearchParams({ by: "version", before: change.version_before, after: change.version, agent: change.agent ?? "" })}` : link("/turns", query, { metric: change.metric, agent: change.agent, since: change.since }));
  const when = (change) => `${change.version_before ? `version ${change.version} against ${change.version_before}` : `since about ${time(change.since).slice(0, 16)}`}, detected ${time(change.at).slice(0, 16)} UTC`;
  return html`<section aria-labelledby=${id}><h2 id=${id}>${title}</h2><ul class="changes">${changes.slice(0, 20).map((change) => html`<li>
    <span class=${`mark ${change.verdict === "better" ? "good" : "bad"}`}>${change.verdict}</span> <${Link} to=${to(change)} aria-label=${`${judged(change) ? "Differences" : "Details"} of ${change.metric} since its change`}><code>${change.metric}</code></${Link}> of <${Pick} query=${query} name="agent" value=${change.agent} />: ${number(change.mean_before)} → ${number(change.mean_after)} <span class="dim">(difference ${number(change.ci_low)} … ${number(change.ci_high)}), ${when(change)}</span>
    ${(change.turns ?? []).slice(0, 3).map((id) => html` <${Link} to=${link(`/turn/${encodeURIComponent(id)}`, query)}><code>${id.slice(0, 8)}</code></${Link}>`)}</li>`)}</ul></section>`;
}

function Table({ found, by, query }) {
  const most = new Map();
  for (const one of found.estimates) if (one.high !== null) most.set(one.metric, Math.max(most.get(one.metric) ?? 0, one.high));
  return html`<section><h2 id="estimates">Estimates</h2><div class="scroll" tabindex="0" role="region" aria-labelledby="estimates"><table>
    <caption>Estimates for all turns, judged or not, with 95 % intervals. The lowest pass rates come first.</caption>
    <thead><tr><th scope="col">metric</th><th scope="col">${by}</th><th scope="col" class="n">pass rate</th><th scope="col" class="n">failed</th><th scope="col" class="n">mean</th><th scope="col">interval</th><th scope="col" class="n">errors</th><th scope="col" class="n">scored</th><th scope="col" class="n">of turns</th></tr></thead>
    <tbody>${found.estimates.map((one) => {
      const to = (more) => link("/turns", query, { ...only(by, one.group), metric: one.metric, ...more });
      const wide = one.unit === "1" && (most.get(one.metric) ?? 0) <= 1 ? 1 : most.get(one.metric);
      return html`<tr><td><${Link} to=${link("/", query, { metric: one.metric })}><code>${one.metric}</code></${Link}></td><td><${Pick} query=${query} path="/" name=${by} value=${one.group}>${nameOf(one.group, by)}</${Pick}></td>
        <td class="n">${percent(one.pass_rate)}</td><td class="n">${one.failed ? html`<${Link} class="bad" to=${to({ outcome: "fail" })}>${count(one.failed)}</${Link}> <${Link} class="small" to=${differences(query, { ...only(by, one.group), metric: one.metric })} aria-label=${`differences of ${one.metric}, ${nameOf(one.group, by)}`}>differences</${Link}>` : "0"}</td>
        <td class="n">${number(one.mean, one.unit)}</td><td><${Interval} ...${one} most=${wide} /><span class="dim small">${number(one.low, one.unit)} … ${number(one.high, one.unit)}</span></td>
        <td class="n">${one.errors ? html`<${Link} class="bad" to=${to({ outcome: "error" })}>${count(one.errors)}</${Link}>` : "0"}</td>
        <td class="n"><${Link} to=${to({})}>${count(one.scored)}</${Link}></td><td class="n">${count(one.turns)}${one.n_eff !== null && one.n_eff < 30 && html` <span class="mark warn" title="intervals are wide with so few turns">few</span>`}</td></tr>`;
    })}</tbody></table></div></section>`;
}
