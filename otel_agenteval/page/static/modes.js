// Failed turns, grouped by their first fault, with the share of each group and its trend.
import { Interval } from "./charts.js";
import { API, Link, Wait, count, filtersOf, go, html, isWorse, link, modeName, percent, points, reach, short, sumsOf, useGet, useLayoutEffect } from "./core.js";
import { Filters } from "./filters.js";

const TRENDS = { new: "warn", growing: "warn", shrinking: "good", gone: "good" };

export function FailureModes({ address, facets }) {
  const { query } = address;
  const by = query.get("by") === "version" ? "version" : null, asked = failedOf(query);
  if (by) asked.set("by", by);
  const found = useGet(`failure-modes?${asked}`);
  const to = link("/failure-modes", query), released = `${to}${to.includes("?") ? "&" : "?"}by=version`;
  return html`<h1>Failure modes</h1><${Filters} address=${address} facets=${facets} lists=${false} />
    <div class="bar"><span id="trend-label">Trend</span> <div class="tabs" role="group" aria-labelledby="trend-label"><button type="button" aria-pressed=${!by} onClick=${() => go(to)}>in time</button><button type="button" aria-pressed=${by !== null} onClick=${() => go(released)}>by version</button></div></div>
    <${Wait} of=${found}>${(one) => html`<${Found} found=${one} query=${query} cases=${facets?.content} />`}</${Wait}>`;
}

// The view's filters for a link to its failed turns. If a metric is selected, only turns that failed it match.
function failedOf(query) {
  const found = sumsOf(query);
  if (found.has("metric")) found.set("outcome", "fail");
  return found;
}

const whose = (query) => filtersOf(query, ["since", "until", "agent", "service", "version", "model"]);

function Found({ found: { modes, turns }, query, cases }) {
  const selected = query.get("mode"), metric = query.get("metric");
  useLayoutEffect(() => reach(selected), [selected]);
  if (!modes.length) return html`<p class="empty">None of ${count(turns)} turns failed${metric && html` <code>${metric}</code>`}.</p>`;
  const sorted = [...modes].sort((a, b) => isWorse(b) - isWorse(a) || b.failed - a.failed);
  const wide = Math.max(...modes.flatMap((one) => [one, ...(one.groups ?? []).slice(-2)].map((each) => each.interval[1]))), far = Math.max(...modes.flatMap((one) => one.change.map(Math.abs)));
  const groups = modes[0].groups?.slice(-2).map((one) => one.group);
  const share = (one) => html`<td class="n">${percent(one.rate, 1)}</td><td><${Interval} mean=${one.rate === null ? null : 100 * one.rate} low=${100 * one.interval[0]} high=${100 * one.interval[1]} most=${100 * wide} unit="%" /><span class="dim small">${percent(one.interval[0], 1)} … ${percent(one.interval[1], 1)}</span></td>`;
  const of = (id) => link("/turns", failedOf(query), { mode: id });
  return html`<p class="bar"><${Link} to=${link("/turns", failedOf(query), { outcome: "fail" })}>${count(modes.reduce((sum, one) => sum + one.failed, 0))} of ${count(turns)} turns failed${metric && html` <code>${metric}</code>`}</${Link}>
      ${metric && html`<${Link} to=${link("/differences", sumsOf(query))}>Differences</${Link}>`}</p>
    <p class="dim">A turn counts in the mode of its first fault. The trend compares ${groups ? "the two versions that appeared last" : "the first and the second half of the time range"}.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Failure modes"><table>
      <thead><tr><th scope="col">mode</th><th scope="col">trend</th><th scope="col">change</th>${(groups ?? ["all turns"]).map((group) => html`<th scope="col" class="n">of <bdi>${group}</bdi></th><th scope="col">interval</th>`)}<th scope="col" class="n">failed turns</th><th scope="col">latest</th>${cases && html`<th scope="col">test cases</th>`}</tr></thead>
      <tbody>${sorted.map((one) => html`<tr data-path=${one.id} tabindex="-1" class=${one.id === selected ? "chosen" : ""}><td class="fact"><${Link} to=${of(one.id)}><bdi>${modeName(one)}</bdi></${Link}></td>
        <td><span class=${`mark ${TRENDS[one.trend] ?? ""}`}>${one.trend}</span></td>
        <td><${Interval} mean=${0} low=${100 * one.change[0]} high=${100 * one.change[1]} least=${-100 * far} most=${100 * far} unit="pp" /><span class="dim small">${points(one.change[0])} … ${points(one.change[1])}</span></td>
        ${(groups ? one.groups.slice(-2) : [one]).map(share)}
        <td class="n"><${Link} to=${of(one.id)} aria-label=${`${count(one.failed)} turns of ${modeName(one)}`}>${count(one.failed)}</${Link}></td>
        <td class="one-line">${one.examples.map((id) => html`<${Link} to=${link(`/turn/${encodeURIComponent(id)}`, failedOf(query), { mode: one.id })}><code>${short(id)}</code></${Link}> `)}</td>
        ${cases && html`<td><a href=${`${API}/failure-modes/${one.id}/cases?${whose(query)}`} download aria-label=${`Download test cases of ${modeName(one)}`}>Download</a></td>`}</tr>`)}</tbody></table></div>`;
}
