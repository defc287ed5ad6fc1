// The bar of filters, the same in all views. It starts folded if there is little room.
import { FILTERS, filtersOf, go, html, link, modeName, time, useGet, useRef, useState } from "./core.js";

const TIMES = [["1h", "last hour"], ["24h", "last 24 hours"], ["7d", "last 7 days"], ["30d", "last 30 days"]];
const ONE_OF = [["agent", "agents", "Agent"], ["service", "services", "Service"], ["version", "versions", "Version"], ["model", "models", "Model"]];


// Converts a time in the address, which can be an age or seconds since 1970, to the value of a form field.
function written(text, digits = 19) {
  const age = /^(\d+)([mhd])$/.exec(text), zone = /(Z|[+-]\d\d:?\d\d)$/.test(text) ? "" : "Z";
  const at = age ? Date.now() / 1000 - age[1] * { m: 60, h: 3600, d: 86400 }[age[2]] : /^[\d.]+$/.test(text) ? Number(text) : Date.parse(text + zone) / 1000;
  return text && Math.abs(at) < 1e11 ? time(at).replace(" ", "T").slice(0, digits) : "";
}

// A field isn't updated while someone types into it, because new data would overwrite the text.
export function Filters({ address, facets, lists = true, names = [], kept = {} }) {
  const { path, query } = address;
  const change = (changes) => go(link(path, query, { ...kept, ...changes })), set = (name, value) => change({ [name]: value });
  const since = query.get("since") ?? "", until = query.get("until") ?? "", ages = TIMES.some(([one]) => one === since) || !since;
  const [own, choose] = useState(false);
  const ranged = own || until || !ages;
  const facts = query.getAll("fact");
  const search = useRef(null);
  const [open, fold] = useState(() => matchMedia("(min-width: 34rem)").matches);
  const select = (name, label, options, all = "all") => html`<label class="filter"><span>${label}</span>
    <select value=${query.get(name) ?? ""} onChange=${(event) => set(name, event.currentTarget.value)}>
      <option value="">${all}</option>${options.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
      ${query.get(name) && !options.some(([value]) => value === query.get(name)) && html`<option value=${query.get(name)}>${query.get(name)}</option>`}
    </select></label>`;
  const mode = query.get("mode"), named = useGet(mode ? `failure-modes?${new URLSearchParams({ mode })}` : null);
  const textOf = { since: TIMES.find(([one]) => one === since)?.[1] ?? written(since).replace("T", " "), until: written(until).replace("T", " "), mode: mode && named.value?.modes.length ? modeName(named.value.modes[0]) : null };
  const chips = [...filtersOf(query)].filter(([name]) => FILTERS.includes(name));
  const submit = (event) => { event.preventDefault(); set("text", search.current.value.trim()); };
  const limit = (name, label) => html`<label class="filter"><span>${label}</span><input type="number" step="any" key=${query.get(name)} defaultValue=${query.get(name) ?? ""} onChange=${(event) => set(name, event.currentTarget.value)} /></label>`;
  return html`<section class="filters" aria-label="Filters">
    <details open=${open} onToggle=${(event) => fold(event.currentTarget.open)}><summary>Filters</summary><div class="filter-row">
      <label class="filter"><span>Time</span><select value=${ranged ? "own" : since} onChange=${(event) => { const { value } = event.currentTarget; choose(value === "own"); if (value !== "own") change({ since: value, until: null }); }}>
        <option value="">all time</option>${TIMES.map(([value, text]) => html`<option value=${value}>${text}</option>`)}<option value="own">from … to …</option></select></label>
      ${ranged && [["since", "From (UTC)"], ["until", "To (UTC)"]].map(([name, label]) => html`<label class="filter"><span>${label}</span><input type="datetime-local" key=${query.get(name)} defaultValue=${written(query.get(name), 16)} onChange=${(event) => set(name, event.currentTarget.value && `${event.currentTarget.value.slice(0, 16)}:00Z`)} /></label>`)}
      ${ONE_OF.map(([name, key, label]) => select(name, label, (facets?.[key] ?? []).map((one) => [one.name, `${one.name} (${one.turns.toLocaleString("en")})`])))}
      ${select("metric", "Metric", (facets?.metrics ?? []).map((one) => [one.name, one.name]))}
      ${lists && html`
        ${select("outcome", "Outcome", [["fail", "fail"], ["pass", "pass"], ["error", "error"]], "any")}
        ${select("severity", "Finding", [["critical", "critical"], ["warning", "warning"], ["info", "info"]], "any")}
        ${limit("below", "Below")}${limit("above", "Above")}
        <label class="filter"><span>Tool</span><input type="text" key=${query.get("tool")} defaultValue=${query.get("tool") ?? ""} onChange=${(event) => set("tool", event.currentTarget.value.trim())} /></label>
        ${facets?.users && html`<label class="filter"><span>User</span><input type="text" key=${query.toString()} onChange=${(event) => set("fact", [...facts, `user.id=${event.currentTarget.value.trim()}`])} /></label>`}
        <label class="filter"><span>Attribute or fact</span><input type="text" list="fact-names" placeholder="language=de, cost_usd>0.1" key=${query.toString()} onChange=${(event) => set("fact", [...facts, event.currentTarget.value.trim()])} /></label>
        <datalist id="fact-names">${names.map((name) => html`<option value=${`${name}=`}></option>`)}</datalist>
        <label class="filter check"><input type="checkbox" checked=${query.get("error") === "true"} onChange=${(event) => set("error", event.currentTarget.checked ? "true" : null)} /><span>Ended with an error</span></label>
        ${facets?.content && html`<form class="filter" role="search" onSubmit=${submit}><label><span>Text</span><input id="search" ref=${search} type="search" key=${query.get("text")} defaultValue=${query.get("text") ?? ""} onChange=${submit} /></label></form>`}`}
    </div></details>
    ${chips.length > 0 && html`<ul class="chips" aria-label="Active filters">
      ${chips.map(([name, value]) => [name, textOf[name] || value, value]).map(([name, text, value]) => html`<li><button type="button" onClick=${() => set(name, query.getAll(name).filter((one) => one !== value))} aria-label=${`Remove filter ${name} ${text}`}><span class="dim">${name}</span> <bdi>${text}</bdi> <span aria-hidden="true">×</span></button></li>`)}
      <li><button type="button" class="quiet" onClick=${() => go(path)}>Remove all</button></li>
    </ul>`}
  </section>`;
}
