// The catalog of metrics, and the health of the sidecar.
import { Json, Link, Wait, bytes, count, dollars, go, html, time, useGet, useState } from "./core.js";

export function Catalogue({ address }) {
  const found = useGet("metrics");
  const asked = address.query.get("q") ?? "", kind = address.query.get("kind") ?? "";
  const to = (q, k) => { const wanted = new URLSearchParams(); if (q) wanted.set("q", q); if (k) wanted.set("kind", k); return `/catalogue${wanted.size ? `?${wanted}` : ""}`; };
  return html`<h1>Metrics</h1><div class="bar"><label>Find <input id="search" type="search" value=${asked} onInput=${(event) => go(to(event.currentTarget.value, kind), { replace: true })} /></label>
    <label>Kind <select value=${kind} onChange=${(event) => go(to(asked, event.currentTarget.value))}><option value="">all</option><option value="code">computed</option><option value="llm">judged</option><option value="embed">embedded</option></select></label></div>
    <${Wait} of=${found}>${({ metrics }) => { const words = asked.toLowerCase().split(/\s+/).filter(Boolean); const shown = metrics.filter((one) => (!kind || one.kind === kind) && words.every((word) => `${one.name} ${one.family} ${one.headline} ${one.aliases.join(" ")} ${one.other_tools.join(" ")}`.toLowerCase().includes(word)));
      return html`<p role="status" class="dim">${count(shown.length)} of ${count(metrics.length)}</p><ul class="catalogue">${shown.map((one) => html`<${Metric} key=${one.name} one=${one} open=${shown.length === 1} />`)}</ul>`; }}</${Wait}>`;
}
function Metric({ one, open }) {
  return html`<li><details open=${open}><summary><code>${one.name}</code> ${one.inline && html`<span class="mark good">default</span>`} <span class="dim">${one.headline}</span></summary>
    <p class="doc">${one.doc}</p><dl class="facts"><div><dt>family</dt><dd>${one.family}</dd></div><div><dt>meaning</dt><dd>${one.meaning}</dd></div><div><dt>needs</dt><dd>${one.needs.join(", ") || "nothing"}</dd></div>
      ${one.references.length > 0 && html`<div><dt>references</dt><dd>${one.references.join(", ")}</dd></div>`}<div><dt>also known as</dt><dd>${[...one.aliases, ...one.other_tools].join(", ") || "–"}</dd></div></dl>
    ${Object.keys(one.parameters).length > 0 && html`<${Json} value=${one.parameters} summary="parameters" />`}<p><${Link} to=${`/turns?metric=${encodeURIComponent(one.name)}`}>Turns with this score</${Link}></p></details></li>`;
}

// Readable texts for the API's words.
const WORDS = { ok: "accepted", partial: "accepted in part", gated: "not sent, because the budget is used up", unreadable: "with an unreadable reply", cancelled: "canceled by the sender", root_ended: "its root span ended", recorded_file: "read from a file", not_in_a_turn: "not part of a turn", held: "in open turns", vacuous: "nothing to evaluate", pass: "passed", fail: "failed", error: "errors", delay: "after the wait for late spans", made: "to deliver", queue_full: "the queue is full", fault: "internal error", too_long: "too long", poisoned: "they crashed the sidecar or took too long", unauthenticated: "without a valid token", worker: "spans to score", requests: "received requests", journal: "journal", judge: "turns to judge" };
const LOST = ["queue_full", "shutdown", "fault", "stuck", "too_long", "poisoned", "error"]; // other reasons are choices of the configuration
const SKIPPED = ["none", "judged metrics", "judged and embedding metrics", "judged, embedding, and heavy computed metrics"];
const plain = (word) => WORDS[word] ?? word.replaceAll("_", " ");
const known = (of) => Object.entries(of ?? {}).filter(([, n]) => n > 0), many = (n, unit) => `${count(n)} ${unit}${n === 1 ? "" : "s"}`;
const part = (unit, n) => (unit === "usd" ? dollars(n) : many(n, unit.replace(/s$/, "")));
const left = (one) => `${part(one.unit, one.remaining)} of ${part(one.unit, one.limit)} per ${one.window}${one.metric ? ` for ${one.metric}` : ""}`;
const gauges = (sidecar, name) => Object.entries(sidecar.more ?? {}).filter(([key]) => key === name || key.startsWith(`${name} `)).map(([key, n]) => [key.slice(name.length + 1), n]);
const queuesOf = (sidecar) => gauges(sidecar, "queue.size").map(([name, n]) => ({ name: plain(name), n, most: gauges(sidecar, "queue.capacity").find(([one]) => one === name)?.[1] }));

function problemsOf(sidecar) {
  const results = sidecar.results ?? {}, all = Object.values(results).reduce((sum, n) => sum + n, 0), unread = (sidecar.unread_traces ?? []).reduce((sum, one) => sum + one.traces, 0), [[, level] = []] = gauges(sidecar, "load_level");
  return [
    ...known(sidecar.faults).map(([where, n]) => `${many(n, "internal error")} in ${plain(where)} (see the log)`),
    ...known(sidecar.requests).filter(([name]) => name !== "ok").map(([name, n]) => `${many(n, "request")} ${["partial", "cancelled"].includes(name) ? plain(name) : `refused: ${plain(name)}`}`),
    ...known(sidecar.spans?.not_used).filter(([name]) => LOST.includes(name)).map(([name, n]) => `${many(n, "span")} lost: ${plain(name)}`),
    ...known(sidecar.outlet_errors).map(([name, n]) => `${many(n, "error")} of outlet ${plain(name)}`),
    ...Object.entries(sidecar.outlets ?? {}).flatMap(([outlet, { failed }]) => known(failed).map(([name, n]) => `${many(n, "record")} not delivered to ${outlet}: ${plain(name)}`)),
    ...gauges(sidecar, "judge.requests").filter(([name, n]) => name !== "ok" && n > 0).map(([name, n]) => `${many(n, "judge request")} ${name === "error" ? "failed" : plain(name)}`),
    ...(sidecar.budgets ?? []).filter((one) => one.remaining < 0.1 * one.limit).map((one) => `judge budget nearly used up: ${left(one)} left`),
    ...queuesOf(sidecar).filter(({ n, most }) => n > 0.9 * most).map(({ name, n, most }) => `queue of ${name} nearly full: ${bytes(n)} of ${bytes(most)}`),
    results.error > 0.05 * all && `${count(results.error)} of ${count(all)} results are errors`, level > 0 && `overloaded: ${SKIPPED[level]} are skipped`, unread > 0 && `${many(unread, "trace")} couldn't be read`,
  ].filter(Boolean);
}

export function Health() {
  const [version, again] = useState(0);
  const found = useGet("health", version);
  const table = (title, rows) => rows.length > 0 && html`<section><h2>${title}</h2><table><tbody>${rows.map(([name, text]) => html`<tr><th scope="row">${name}</th><td class="n">${text}</td></tr>`)}</tbody></table></section>`;
  const rows = (of, unit, before = "") => Object.entries(of ?? {}).filter(([, n]) => typeof n === "number").map(([name, n]) => [`${before}${plain(name)}`, many(n, unit)]);
  const unread = (traces) => traces.length > 0 && html`<section><h2>Unread traces</h2><table><thead><tr><th scope="col">scope</th><th scope="col">missing</th><th scope="col" class="n">traces</th><th scope="col">what helps</th></tr></thead><tbody>${traces.map((one) => html`<tr><th scope="row">${one.scope || "(none)"}</th><td>${one.missing}</td><td class="n">${count(one.traces)}</td><td>${one.fix}</td></tr>`)}</tbody></table></section>`;
  const verdict = (problems) => html`<p role="status" class=${problems.length ? "problem" : "fine"}>${problems.length ? html`<strong>Problems</strong> since the start: ${problems.join("; ")}.` : html`<strong>All is well.</strong>`}</p>`;
  return html`<h1>Health</h1><p class="bar"><button type="button" onClick=${() => again(version + 1)}>Refresh</button></p>
    <${Wait} of=${found}>${({ sidecar, store }) => html`${sidecar ? verdict(problemsOf(sidecar)) : html`<p class="dim">The ui command serves this page, so no sidecar status is available.</p>`}<div class="tables">
      ${table("Store", [["turns", many(store.turns, "turn")], ["first (UTC)", time(store.since)], ["last (UTC)", time(store.until)], ["not summarized yet", many(store.hours_not_summed, "hour")]])}
      ${sidecar && html`${table("Spans", [...rows(sidecar.spans, "span"), ...rows(sidecar.spans?.not_used, "span", "not used: ")])}${table("Turns", [...rows(sidecar.turns, "turn"), ...rows(sidecar.turns?.closed, "turn", "closed: ")])}${table("Requests", rows(sidecar.requests, "request"))}${table("Results of metrics", rows({ ...sidecar.results, measured: sidecar.results?.ok, ok: null, "excluded by their condition (when)": sidecar.results?.gated, gated: null }, "result"))}
        ${table("Outlets", Object.entries(sidecar.outlets ?? {}).flatMap(([name, account]) => rows({ ...account, ...account.failed }, "record", `${name}: `)))}${table("Judge budget left", (sidecar.budgets ?? []).map((one) => [one.metric ?? "all metrics", left({ ...one, metric: null })]))}${table("Judge requests", gauges(sidecar, "judge.requests").map(([name, n]) => [plain(name), many(n, "request")]))}${table("Queues", queuesOf(sidecar).map(({ name, n, most }) => [name, `${bytes(n)} of ${bytes(most)}`]))}${unread(sidecar.unread_traces ?? [])}`}</div>`}</${Wait}>`;
}
