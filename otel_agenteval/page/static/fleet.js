// How all agents do: estimates with intervals, over time, with what changed and how many turns stand behind each number.
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
  lately.delete("metric");
  if (!lately.has("since")) lately.set("since", "24h");
  const modes = useGet(facets?.causes ? `failure-modes?${lately}` : null);
  const change = (value) => go(`${link("/", query)}${link("/", query).includes("?") ? "&" : "?"}by=${value}`);
  return html`<h1>Fleet</h1>
    <${Filters} address=${address} facets=${facets} lists=${false} />
    <div class="bar"><span id="by-label">Grouped by</span> <div class="tabs" role="group" aria-labelledby="by-label">${BY.map(([value, text]) => html`<button type="button" aria-pressed=${by === value} onClick=${() => change(value)}>${text}</button>`)}</div>
      ${facets?.budget_usd !== null && facets?.budget_usd !== undefined && html`<span class="dim">${dollars(facets.budget_usd)} left in the judge budget</span>`}</div>
    <${Wait} of=${estimates}>${(found) => html`
      <${Attention} found=${found} changes=${series.value?.changes ?? []} modes=${modes.value?.modes ?? []} lately=${lately} facets=${facets} query=${query} />
      <${Groups} found=${found} by=${by} query=${query} />
      <${Wait} of=${series}>${(over) => html`<${Multiples} found=${found} over=${over} by=${by} query=${query} /><${Changes} title="Other changes" changes=${over.changes.filter((one) => one.verdict !== "worse")} query=${query} />`}</${Wait}>
      <${Table} found=${found} by=${by} query=${query} />
      ${found.hours_not_summed > 2 && html`<p class="dim">${count(found.hours_not_summed)} hours aren't summarized yet. Until then, this view is slower, but complete.</p>`}`}
    </${Wait}>`;
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
  return html`<ul class="cards">${found.groups.map((group, i) => html`<li class=${colourOf(i)}>
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

function Multiples({ found, over, by, query }) {
  const groups = found.groups.map((group) => group.group);
  const metrics = [...new Set(found.estimates.map((one) => one.metric))];
  const byMetric = new Map();
  for (const one of over.series) {
    if (!one.metric) continue;
    const place = groups.indexOf(one.group);
    if (place >= 0 && place < 6) byMetric.set(one.metric, [...(byMetric.get(one.metric) ?? []), { name: nameOf(one.group, by), group: one.group, place, points: one.points }]);
  }
  const chosen = query.get("metric");
  const shown = chosen ? metrics.filter((metric) => metric === chosen) : metrics;
  const last = (point) => point.at + over.step_s;
  return html`<section aria-labelledby="over-time"><h2 id="over-time">Over time</h2><div class=${`multiples ${chosen ? "one" : ""}`}>
    ${shown.map((metric) => {
      const facts = found.estimates.find((one) => one.metric === metric);
      const marks = over.changes.filter((change) => change.metric === metric);
      const releases = over.releases.filter((one) => one.at > over.since);
      return html`<article><h3><${Link} to=${link("/", query, { metric })}><code>${metric}</code></${Link}>${marks.length > 0 && html` <span class="mark bad" title="changes were detected">${marks.length} changed</span>`}</h3>
        <${Chart} title=${metric} lines=${byMetric.get(metric) ?? []} since=${over.since} until=${over.until} step=${over.step_s} unit=${facts.unit} marks=${marks} releases=${releases}
          width=${chosen ? 960 : 320} height=${chosen ? 260 : 96}
          to=${(point, line) => link("/turns", query, { ...only(by, line.group), metric, since: point.at, until: last(point) })} /></article>`;
    })}</div></section>`;
}

// What to look at first. Nothing is shown that is as it should be.
function Attention({ found, changes, modes, lately, facets, query }) {
  return html`<${Changes} title="Changes for the worse" changes=${changes.filter((one) => one.verdict === "worse")} query=${query} />
    <${Growing} modes=${modes.filter(isWorse)} query=${lately} /><${Warnings} facets=${facets} /><${MostFailures} found=${found} query=${query} />`;
}

function Growing({ modes, query }) {
  if (!modes.length) return null;
  return html`<section aria-labelledby="growing"><h2 id="growing">New and growing failure modes${query.get("since") === "24h" && " in the last 24 hours"}</h2><ul class="changes">${modes.slice(0, 5).map((one) => html`<li>
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
    ${unread > 0 && html`<li><span class="mark warn">unread</span> <${Link} to="/health">${count(unread)} traces gave no turn or no text</${Link}></li>`}</ul></section>`;
}

export function MostFailures({ found, query }) {
  const sums = new Map();
  for (const { metric, failed, scored } of found.estimates) { const before = sums.get(metric) ?? [0, 0]; sums.set(metric, [before[0] + failed, before[1] + scored]); }
  const most = [...sums].filter(([, [failed]]) => failed).sort(([, a], [, b]) => b[0] - a[0]).slice(0, 5);
  if (!most.length) return null;
  return html`<section aria-labelledby="failures"><h2 id="failures">Most failures</h2><ul class="changes">${most.map(([metric, [failed, scored]]) => html`<li>
    <span class="mark bad">${count(failed)} failed</span> <${Link} to=${differences(query, { metric })}><code>${metric}</code></${Link}> <span class="dim">${percent(failed / scored, 1)} of ${count(scored)} scored turns</span></li>`)}</ul><p><${Link} to=${link("/failure-modes", sumsOf(query))}>Failure modes of all failed turns</${Link}></p></section>`;
}

function Changes({ title, changes, query }) {
  if (!changes.length) return null;
  const id = title.replaceAll(" ", "-");
  return html`<section aria-labelledby=${id}><h2 id=${id}>${title}</h2><ul class="changes">${changes.slice(0, 20).map((change) => html`<li>
    <span class=${`mark ${change.verdict === "better" ? "good" : "bad"}`}>${change.verdict}</span> <${Link} to=${differences(query, { metric: change.metric, agent: change.agent, since: change.since })} aria-label=${`Differences of ${change.metric} since its change`}><code>${change.metric}</code></${Link}> of <${Pick} query=${query} name="agent" value=${change.agent} />: ${number(change.mean_before)} → ${number(change.mean_after)} <span class="dim">(difference ${number(change.ci_low)} … ${number(change.ci_high)}), ${time(change.at)}${change.version ? `, version ${change.version}` : ""}</span>
    ${(change.turns ?? []).slice(0, 3).map((id) => html` <${Link} to=${link(`/turn/${encodeURIComponent(id)}`, query)}><code>${id.slice(0, 8)}</code></${Link}>`)}</li>`)}</ul></section>`;
}

function Table({ found, by, query }) {
  const most = new Map();
  for (const one of found.estimates) if (one.high !== null) most.set(one.metric, Math.max(most.get(one.metric) ?? 0, one.high));
  return html`<section><h2 id="estimates">Estimates</h2><div class="scroll" tabindex="0" role="region" aria-labelledby="estimates"><table>
    <caption>Estimates for all turns, judged or not, with 95 % intervals. The lowest pass rates come first.</caption>
    <thead><tr><th scope="col">metric</th><th scope="col">${by}</th><th scope="col" class="n">mean</th><th scope="col">interval</th><th scope="col" class="n">pass rate</th><th scope="col" class="n">failed</th><th scope="col" class="n">errors</th><th scope="col" class="n">scored</th><th scope="col" class="n">of turns</th></tr></thead>
    <tbody>${found.estimates.map((one) => {
      const to = (more) => link("/turns", query, { ...only(by, one.group), metric: one.metric, ...more });
      const wide = one.unit === "1" && (most.get(one.metric) ?? 0) <= 1 ? 1 : most.get(one.metric);
      return html`<tr><td><${Link} to=${link("/", query, { metric: one.metric })}><code>${one.metric}</code></${Link}></td><td><${Pick} query=${query} path="/" name=${by} value=${one.group}>${nameOf(one.group, by)}</${Pick}></td>
        <td class="n">${number(one.mean, one.unit)}</td><td><${Interval} ...${one} most=${wide} /><span class="dim small">${number(one.low, one.unit)} … ${number(one.high, one.unit)}</span></td>
        <td class="n">${percent(one.pass_rate)}</td><td class="n">${one.failed ? html`<${Link} class="bad" to=${to({ outcome: "fail" })}>${count(one.failed)}</${Link}> <${Link} class="small" to=${differences(query, { ...only(by, one.group), metric: one.metric })} aria-label=${`differences of ${one.metric}, ${nameOf(one.group, by)}`}>differences</${Link}>` : "0"}</td>
        <td class="n">${one.errors ? html`<${Link} class="bad" to=${to({ outcome: "error" })}>${count(one.errors)}</${Link}>` : "0"}</td>
        <td class="n"><${Link} to=${to({})}>${count(one.scored)}</${Link}></td><td class="n">${count(one.turns)}${one.n_eff !== null && one.n_eff < 30 && html` <span class="mark warn" title="intervals are wide with so few turns">few</span>`}</td></tr>`;
    })}</tbody></table></div></section>`;
}
