// The catalogue of metrics, and how the sidecar itself does.
import { Json, Link, Wait, count, go, html, time, useGet, useState } from "./core.js";

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

export function Health() {
  const [version, again] = useState(0);
  const found = useGet("health", version);
  const table = (title, of) => (of && Object.keys(of).length ? html`<section><h2>${title}</h2><table><tbody>${Object.entries(of).map(([name, value]) => html`<tr><th scope="row">${name}</th><td class=${typeof value === "object" ? "" : "n"}>${typeof value === "object" && value !== null ? html`<${Json} value=${value} summary="show" />` : typeof value === "number" ? count(value) : String(value)}</td></tr>`)}</tbody></table></section>` : null);
  const unread = (traces) => traces.length > 0 && html`<section><h2>Unread traces</h2><table><thead><tr><th scope="col">scope</th><th scope="col">missing</th><th scope="col" class="n">traces</th><th scope="col">what helps</th></tr></thead><tbody>${traces.map((one) => html`<tr><th scope="row">${one.scope || "(none)"}</th><td>${one.missing}</td><td class="n">${count(one.traces)}</td><td>${one.fix}</td></tr>`)}</tbody></table></section>`;
  return html`<h1>Health</h1><p class="bar"><button type="button" onClick=${() => again(version + 1)}>Refresh</button></p>
    <${Wait} of=${found}>${({ sidecar, store }) => html`<div class="tables">
      <section><h2>Store</h2><table><tbody><tr><th scope="row">turns</th><td class="n">${count(store.turns)}</td></tr><tr><th scope="row">first</th><td>${time(store.since)}</td></tr><tr><th scope="row">last</th><td>${time(store.until)}</td></tr><tr><th scope="row">hours not summarized</th><td class="n">${count(store.hours_not_summed)}</td></tr></tbody></table></section>
      ${sidecar ? html`${table("Spans", sidecar.spans)}${table("Turns", { ...sidecar.turns, ...sidecar.turns.closed, closed: undefined })}${table("Requests", sidecar.requests)}${table("Results", sidecar.results)}${table("Outlets", sidecar.outlets)}${table("Errors of outlets", sidecar.outlet_errors)}${table("Faults", sidecar.faults)}${table("Judges and queues", sidecar.more)}${unread(sidecar.unread_traces ?? [])}` : html`<p class="dim">This page shows a file, so no sidecar status is available.</p>`}</div>`}</${Wait}>`;
}
