// Compares two releases, models, or agents metric by metric, or two turns side by side.
import { Interval } from "./charts.js";
import { Link, Mark, Wait, cost, count, go, html, isBad, link, number, percent, seconds, short, sumsOf, time, useGet, useState } from "./core.js";
import { Filters } from "./filters.js";
import { Said } from "./turn.js";

const BY = ["version", "model", "agent", "service", "judge"];

export function Compare({ address, facets }) {
  const { query } = address;
  if (query.get("a")) return html`<${TwoTurns} a=${query.get("a")} b=${query.get("b")} />`;
  const by = BY.includes(query.get("by")) ? query.get("by") : "version";
  const [first, second] = by === "version" ? facets?.compared ?? [] : []; // the two runs passed to `ui`, or the latest two
  const names = (facets?.[`${by}s`] ?? []).map((one) => one.name);
  const before = query.get("before") ?? first ?? "", after = query.get("after") ?? second ?? "";
  const to = (changes) => { const wanted = sumsOf(query); for (const [name, value] of Object.entries({ by, before, after, ...changes })) if (value) wanted.set(name, value); return `/compare?${wanted}`; };
  const asked = sumsOf(query);
  for (const [name, value] of Object.entries({ by, before, after })) asked.set(name, value);
  const found = useGet(before && after ? `compare?${asked}` : null);
  const choose = (label, name, value) => html`<label>${label} <select value=${value} onChange=${(event) => go(to({ [name]: event.currentTarget.value }))}><option value="">choose</option>${names.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>`;
  return html`<h1>Compare</h1><${Filters} address=${address} facets=${facets} lists=${false} />
    <div class="bar"><label>By <select value=${by} onChange=${(event) => go(to({ by: event.currentTarget.value, before: "", after: "" }))}>${BY.map((one) => html`<option value=${one}>${one}</option>`)}</select></label> ${choose("Before", "before", before)} ${choose("After", "after", after)}</div>
    ${before && after ? html`<${Wait} of=${found}>${(one) => html`<${Lines} found=${one} query=${query} />`}</${Wait}>${by !== "judge" && html`<${Cases} asked=${asked.toString()} before=${before} after=${after} />`}` : html`<p class="empty">${names.length < 2 ? `Fewer than two values of ${by} to compare.` : `Select two values of ${by}.`} To compare two turns, select Compare on the page of one of them.</p>`}`;
}

function Lines({ found, query }) {
  const rows = [...found.lines].sort((a, b) => (a.difference?.p ?? 2) - (b.difference?.p ?? 2));
  const side = (group) => html`<td class="n">${count(group.turns)}</td><td class="n">${seconds(group.duration_s)}</td><td class="n">${cost({ ...group, cost_usd: group.priced ? group.cost_usd / group.priced : null })}</td>`;
  const verdict = (line) => {
    const { difference } = line;
    if (!difference) return html`<span class="dim">not compared</span>`;
    if (difference.p >= 0.05) return html`<span class="dim">no difference shown</span>`;
    if (line.direction === "neutral") return html`<span class="mark">changed</span>`;
    const better = (difference.size > 0) === (line.direction === "up");
    return html`<span class=${`mark ${better ? "good" : "bad"}`}>${better ? "better" : "worse"}</span>`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Groups"><table><thead><tr><th scope="col">${found.by}</th><th scope="col" class="n">turns</th><th scope="col" class="n">mean duration</th><th scope="col" class="n">cost per turn</th></tr></thead><tbody><tr><th scope="row">${found.before.group}</th>${side(found.before)}</tr><tr><th scope="row">${found.after.group}</th>${side(found.after)}</tr></tbody></table></div>
    <div class="scroll" tabindex="0" role="region" aria-label="Differences"><table class="compared"><caption>After minus before, with 95 % intervals. p is corrected for the number of tests. Positive amounts are usually tested on a logarithmic scale. ${rows.some((line) => line.difference?.pairs) ? "Turns with the same case ID are pairs. " : "All turns are compared without pairing. "}${found.others ? `${count(found.others)} turns of other groups are left out.` : ""}</caption><thead><tr><th scope="col">metric</th><th scope="col">verdict</th><th scope="col" class="n">difference</th><th scope="col">interval</th><th scope="col" class="n">${found.before.group}</th><th scope="col" class="n">${found.after.group}</th><th scope="col" class="n">p</th><th scope="col" class="n">detectable difference</th></tr></thead>
    <tbody>${rows.map((line) => {
      const d = line.difference, wide = d ? Math.max(Math.abs(d.low), Math.abs(d.high)) || 1 : 1, signed = (value) => `${value > 0 ? "+" : ""}${number(value, line.unit)}`;
      return html`<tr><td><${Link} to=${link("/turns", query, { metric: line.metric, outcome: "fail", [found.by]: found.after.group })}><code>${line.metric}</code></${Link}></td><td>${verdict(line)}</td><td class="n">${d ? signed(d.size) : "–"}</td>
        <td>${d && html`<${Interval} mean=${d.size} low=${d.low} high=${d.high} unit=${line.unit} least=${-wide} most=${wide} /><span class="dim small">${signed(d.low)} … ${signed(d.high)}</span>`}</td><td class="n">${number(line.before?.mean, line.unit)}</td><td class="n">${number(line.after?.mean, line.unit)}</td>
        <td class="n">${d ? (d.p < 0.001 ? "< 0.001" : d.p.toFixed(3)) : "–"}${d?.pairs ? html` <span class="dim small">${count(d.pairs)} pairs</span>` : ""}</td><td class="n">${d ? number(d.detectable, line.unit) : "–"}</td></tr>`;
    })}</tbody></table></div>`;
}

// One row for each case in both groups, with the scores that differ.
function Cases({ asked, before, after }) {
  const [parts, set] = useState([""]);
  return html`<section><h2 id="cases">Case by case</h2><div class="scroll" tabindex="0" role="region" aria-labelledby="cases"><table><caption>The latest turn of each case in both groups. Turns belong to the same case if they have the same case ID or the same input.</caption>
    <thead><tr><th scope="col">case</th><th scope="col">${before}</th><th scope="col">${after}</th><th scope="col">what differs</th></tr></thead>
    <tbody>${parts.map((cursor, i) => html`<${Part} key=${`${asked} ${cursor}`} asked=${asked} cursor=${cursor} more=${i === parts.length - 1 ? (next) => set([...parts, next]) : null} />`)}</tbody></table></div></section>`;
}
function Part({ asked, cursor, more }) {
  const found = useGet(`compare/cases?${asked}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
  if (!found.value) return html`<tr><td colspan="4" class="dim">${found.error ?? "Loading …"}</td></tr>`;
  const { cases, next } = found.value;
  const turn = (one) => html`<td><${Link} to=${`/turn/${encodeURIComponent(one.turn_id)}`}><code>${short(one.turn_id)}</code></${Link}> <bdi class="dim">${one.answered ?? ""}</bdi></td>`;
  const worse = (one) => one.passed_before === true && one.passed_after === false ? "bad" : one.passed_before === false && one.passed_after === true ? "good" : "";
  return html`${cases.map((one) => html`<tr><td><${Link} to=${`/compare?${new URLSearchParams({ a: one.before.turn_id, b: one.after.turn_id })}`}><bdi>${one.before.asked ?? one.case}</bdi></${Link}></td>${turn(one.before)}${turn(one.after)}
    <td>${one.differences.length ? one.differences.map((each) => html`<span class=${`mark ${worse(each)}`}>${each.metric.replace(/^code_/, "")} ${number(each.before, each.unit)} → ${number(each.after, each.unit)}</span> `) : html`<span class="dim">nothing</span>`}</td></tr>`)}
    ${cases.length === 0 && !cursor && html`<tr><td colspan="4" class="dim">No case is in both groups.</td></tr>`}
    ${next && more && html`<tr><td colspan="4"><button type="button" onClick=${() => more(next)}>More cases</button></td></tr>`}`;
}

function TwoTurns({ a, b }) {
  const [other, set] = useState(b ?? "");
  const left = useGet(`turns/${encodeURIComponent(a)}`), right = useGet(b ? `turns/${encodeURIComponent(b)}` : null);
  const submit = (event) => { event.preventDefault(); if (other.trim()) go(`/compare?${new URLSearchParams({ a, b: other.trim() })}`); };
  return html`<h1>Two turns</h1><form class="bar" onSubmit=${submit}><span><code>${short(a)}</code> with</span> <label>turn id <input type="text" value=${other} onInput=${(event) => set(event.currentTarget.value)} /></label> <button>Compare</button></form>
    <${Wait} of=${left}>${(one) => (b ? html`<${Wait} of=${right}>${(two) => html`<${Sides} one=${one} two=${two} />`}</${Wait}>` : html`<p class="empty">Enter the id of the other turn, or at least its first 4 characters.</p>`)}</${Wait}>`;
}

function Sides({ one, two }) {
  const pair = [one, two];
  const names = [...new Set(pair.flatMap((all) => all.scores.map((score) => score.metric)))].sort();
  const of = (all, metric) => all.scores.find((score) => score.metric === metric);
  const cell = (score) => (score ? html`<${Mark} score=${score} /> ${score.type === "boolean" ? "" : number(score.value, score.unit)}` : html`<span class="dim">–</span>`);
  const row = (name, pick) => html`<tr><th scope="row">${name}</th>${pair.map((all) => html`<td>${pick(all)}</td>`)}<td>–</td></tr>`;
  const delta = (metric) => { const [x, y] = pair.map((all) => of(all, metric)); return x && y && x.value !== null && y.value !== null && x.value !== y.value ? `${y.value > x.value ? "+" : ""}${number(y.value - x.value, y.unit)}` : ""; };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Two turns"><table class="sides"><thead><tr><th scope="col">turn</th>${pair.map((all) => html`<th scope="col"><${Link} to=${`/turn/${encodeURIComponent(all.turn.turn_id)}`}><code>${short(all.turn.turn_id)}</code></${Link}></th>`)}<th scope="col">difference</th></tr></thead><tbody>
    ${row("began", (all) => time(all.turn.start))}${row("agent", (all) => all.turn.agent ?? "–")}${row("model", (all) => all.turn.model ?? "–")}${row("version", (all) => all.turn.service_version ?? "–")}
    ${row("took", (all) => seconds(all.turn.duration_s))}${row("tokens", (all) => `${count(all.turn.input_tokens)} in, ${count(all.turn.output_tokens)} out`)}${row("cost", (all) => cost(all.turn))}${row("tools", (all) => (all.turn.tools ?? []).join(", ") || "–")}
    ${row("asked", (all) => (all.content ? html`<${Said} value=${all.content.input ?? ""} />` : html`<span class="dim">not shown</span>`))}${row("answered", (all) => (all.content ? html`<${Said} value=${all.content.output ?? ""} />` : html`<span class="dim">not shown</span>`))}
    ${names.map((metric) => html`<tr class=${pair.some((all) => of(all, metric) && isBad(of(all, metric))) ? "marked" : ""}><th scope="row"><code>${metric}</code></th>${pair.map((all) => html`<td>${cell(of(all, metric))}</td>`)}<td class="n">${delta(metric)}</td></tr>`)}
  </tbody></table></div>`;
}
