// The list of turns, live, filtered, sorted, and of any length, or the list of their conversations.
import { API, FILTERS, Link, Rows, Wait, cost, count, filtersOf, get, go, html, isBad, link, number, seconds, short, sumsOf, time, useCallback, useEffect, useGet, useKeys, useMemo, useRef, useState } from "./core.js";
import { Filters } from "./filters.js";

const COLUMNS = [["time", "time"], ["id", "id"], ["agent", "agent"], ["said", "asked and answered"], ["failed", "failed"], ["value", "value of the metric"], ["model", "model"], ["version", "version"], ["tools", "tools"], ["duration", "duration"], ["tokens", "tokens"], ["cost", "cost"]];
const AT_FIRST = ["time", "id", "agent", "said", "failed", "value", "duration", "cost"];
const KEPT = "agenteval.columns";
const SORTED = { time: ["newest", "oldest"], duration: ["slowest"], tokens: ["most_tokens"], cost: ["costliest"] };
const WORDS = { oldest: "oldest first", slowest: "slowest first", most_tokens: "most tokens first", costliest: "costliest first" };
const PART = 200;
const HEIGHT = 36;

const columnsKept = () => { try { const found = JSON.parse(localStorage.getItem(KEPT)); return Array.isArray(found) && found.length ? found : AT_FIRST; } catch { return AT_FIRST; } };

// Only what a row needs, because a list can be long.
function inShort(turn, metric) {
  const of = metric ? turn.scores.find((score) => score.metric === metric) : null;
  return {
    id: turn.turn_id, at: turn.at, agent: turn.agent, model: turn.model, version: turn.service_version, tools: turn.tools, duration: turn.duration_s, cost_usd: turn.cost_usd, cost_estimated: turn.cost_estimated,
    tokens: (turn.input_tokens ?? null) === null && (turn.output_tokens ?? null) === null ? null : (turn.input_tokens ?? 0) + (turn.output_tokens ?? 0), error: turn.error, asked: turn.asked, answered: turn.answered,
    names: Object.keys({ ...turn.facts, ...turn.attributes }), failed: turn.scores.filter(isBad).map((score) => score.metric), scored: turn.scores.length, value: of ? { value: of.value, unit: of.unit, bad: isBad(of), status: of.status } : null,
  };
}

const Tabs = ({ query, order, grouped }) => html`<nav class="tabs" aria-label="Rows"><${Link} to=${link("/turns", query, { order })} aria-current=${grouped ? undefined : "true"}>Turns</${Link}><${Link} to=${link("/turns", query, { group: "conversation" })} aria-current=${grouped ? "true" : undefined}>Conversations</${Link}></nav>`;

export function Turns({ address, facets }) {
  const { query } = address, metric = query.get("metric");
  const filters = filtersOf(query), order = query.get("order") ?? "newest", ranked = !["newest", "oldest"].includes(order);
  const asked = new URLSearchParams(filters);
  if (order !== "newest") asked.set("order", order);
  const counted = useGet(`count?${filters}`);
  const [list, set] = useState({ rows: [], next: null, done: false, error: null, key: null });
  const [selected, select] = useState(-1);
  const [columns, choose] = useState(columnsKept);
  const [live, setLive] = useState(false);
  const [waiting, setWaiting] = useState([]);
  const busy = useRef(null), key = asked.toString();

  const more = useCallback(async () => {
    const from = list.key === key ? list.next : null;
    if (busy.current === key || (list.key === key && (list.done || list.error))) return;
    busy.current = key;
    const wanted = new URLSearchParams(asked);
    wanted.set("limit", PART);
    if (from) wanted.set("cursor", from);
    try {
      const found = await get(`turns?${wanted}`);
      if (busy.current !== key) return;
      set((old) => ({ rows: [...(old.key === key ? old.rows : []), ...found.turns.map((turn) => inShort(turn, metric))], next: found.next, done: ranked || !found.next, ranked: ranked && (found.next ? "some" : "all"), searching: found.searching, error: null, key }));
    } catch (error) {
      if (busy.current === key) set((old) => ({ ...old, rows: old.key === key ? old.rows : [], error: error.message, key }));
    } finally {
      if (busy.current === key) busy.current = null;
    }
  }, [key, list]);
  useEffect(() => { select(-1); setWaiting([]); }, [key]);
  useEffect(() => { if (list.key !== key || (list.searching && list.rows.length < 60 && !list.done)) more(); }, [key, list]);
  useLive(live && order === "newest", filters, key, useCallback((turns) => setWaiting((old) => {
    const come = turns.map((turn) => inShort(turn, metric));
    const ids = new Set(come.map((turn) => turn.id));
    return [...come.reverse(), ...old.filter((turn) => !ids.has(turn.id))].slice(0, 2000);
  }), [metric]));
  const takeIn = () => {
    const ids = new Set(waiting.map((turn) => turn.id));
    set((old) => ({ ...old, rows: [...waiting, ...old.rows.filter((turn) => !ids.has(turn.id))] }));
    setWaiting([]);
  };
  const rows = list.key === key ? list.rows : [];
  useKeys((event) => {
    if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); select((at) => Math.min(rows.length - 1, at + 1)); }
    else if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); select((at) => Math.max(0, at - 1)); }
    else if (event.key === "Enter" && rows[selected] && !event.target.closest?.("a, button, summary")) go(link(`/turn/${encodeURIComponent(rows[selected].id)}`, query));
    else if (event.key === "l") setLive((on) => !on);
  }, [rows, selected, key]);
  const pick = (name) => {
    const found = COLUMNS.map(([one]) => one).filter((one) => (one === name ? !columns.includes(one) : columns.includes(one)));
    localStorage.setItem(KEPT, JSON.stringify(found));
    choose(found);
  };
  const shown = COLUMNS.filter(([name]) => columns.includes(name) && (name !== "value" || metric) && (name !== "said" || facets?.content));
  const names = useMemo(() => [...new Set(rows.slice(0, PART).flatMap((turn) => turn.names))].sort(), [rows]);
  const file = (format) => { const wanted = new URLSearchParams(filters); wanted.set("format", format); return `${API}/export?${wanted}`; };
  return html`<h1>Turns</h1><${Filters} address=${address} facets=${facets} names=${names} kept=${{ order: query.get("order") }} />
    <div class="bar"><${Tabs} query=${query} order=${query.get("order")} />
      <span role="status" aria-live="polite">${list.error ? "" : rows.length || list.done ? howMany(counted.path === `count?${filters}` ? counted.value : null, rows.length, list) : "Looking …"}${list.searching && !list.done && rows.length === 0 ? " in older turns" : ""}</span>
      ${order === "newest" ? html`<label class="check"><input type="checkbox" checked=${live} onChange=${(event) => setLive(event.currentTarget.checked)} /> Live</label>` : html`<span class="dim" title=${list.ranked === "some" ? "Only the latest turns of the time range were read. Choose a shorter time range to sort all turns" : ""}>${WORDS[order]}${list.ranked === "some" ? ", of the latest turns only" : ""}</span>`}
      ${waiting.length > 0 && html`<button type="button" onClick=${takeIn}>Show ${count(waiting.length)} new</button>`}
      ${metric && html`<${Link} to=${`/differences?${sumsOf(query)}`}>Differences</${Link}>`}
      <${Link} to=${link("/failure-modes", sumsOf(query), { mode: query.get("mode") })}>Failure modes</${Link}>
      <details class="menu"><summary>Columns</summary><fieldset><legend class="hidden">Columns</legend>${COLUMNS.map(([name, text]) => html`<label class="check"><input type="checkbox" checked=${columns.includes(name)} onChange=${() => pick(name)} /> ${text}</label>`)}</fieldset></details>
      <details class="menu"><summary>Export</summary><ul><li><a href=${file("jsonl")}>JSON lines</a></li><li><a href=${file("csv")}>CSV</a></li>${facets?.content && html`<li><a href=${file("dataset")}>Export cases for experiment</a></li>`}</ul></details>
    </div>
    ${list.error && html`<p class="problem" role="alert">${list.error}</p>`}
    ${list.done && rows.length === 0 && html`<p class="empty">No turns match. <${Link} to="/turns">Remove all filters</${Link}></p>`}
    <div class=${`turns columns-${shown.length}`} role="table" aria-label="Turns" aria-rowcount=${list.done ? rows.length : -1}>
      <div class="row head" role="row">${shown.map(([name, text]) => html`<${Header} name=${name} text=${name === "value" ? metric : text} order=${order} query=${query} />`)}</div>
      <${Rows} total=${rows.length} height=${HEIGHT} selected=${selected} onEnd=${more} label="Turns"
        row=${(i, place) => html`<${Turn} key=${rows[i].id} turn=${rows[i]} at=${i} place=${place} shown=${shown} query=${query} chosen=${i === selected} />`} />
    </div>`;
}

// The number of matching turns, or of the turns counted so far.
function howMany(counted, loaded, { done, ranked }) {
  const turns = (n, more = "") => `${count(n)}${more} ${n === 1 && !more ? "turn" : "turns"}`;
  if (!counted || (done && !ranked)) return turns(loaded, done ? "" : "+");
  return (counted.complete ? turns(counted.turns) : `${counted.turns >= 10_000 ? "more than" : "at least"} ${turns(Math.max(counted.turns, loaded))}`) + (ranked && loaded < counted.turns ? `, first ${count(loaded)} shown` : "");
}
function Header({ name, text, order, query }) {
  const orders = SORTED[name], at = orders?.indexOf(order) ?? -1;
  const next = at < 0 ? orders?.[0] : orders[at + 1] ?? "newest";
  return html`<span role="columnheader" class=${`cell ${name}`} aria-sort=${at < 0 ? undefined : order === "oldest" ? "ascending" : "descending"}>${orders ? html`<${Link} to=${link("/turns", query, { order: next === "newest" ? null : next })} title=${`Sort: ${WORDS[next] ?? "newest first"}`}>${text}${at < 0 ? "" : order === "oldest" ? " ▴" : " ▾"}</${Link}>` : text}</span>`;
}

export function Conversations({ address, facets }) {
  const { query } = address;
  const to = (cursor) => link("/turns", query, { group: "conversation", cursor }), cursor = query.get("cursor");
  const found = useGet(`conversations?${filtersOf(query, [...FILTERS, "cursor"])}`);
  return html`<h1>Conversations</h1><${Filters} address=${address} facets=${facets} kept=${{ group: "conversation" }} />
    <div class="bar"><${Tabs} query=${query} grouped=${true} /><span class="dim">Conversations with a matching turn, latest first. The numbers are for the whole conversation.</span></div>
    <${Wait} of=${found}>${({ conversations, next }) => html`${conversations.length > 0 ? html`<div class="scroll" role="region" aria-label="Conversations" tabindex="0"><table><thead><tr><th scope="col">conversation</th>${facets?.content && html`<th scope="col" class="said">latest matching turn</th>`}${["turns", "failed", "errors", "cost", "duration", "last turn (UTC)"].map((name) => html`<th scope="col" class="n">${name}</th>`)}</tr></thead>
      <tbody>${conversations.map((one) => html`<${ConversationRow} key=${one.id} one=${one} content=${facets?.content} />`)}</tbody></table></div>` : html`<p class="empty">No matching turn belongs to a conversation.</p>`}
      <p class="bar">${cursor && html`<${Link} class="button" to=${to(null)}>Latest</${Link}>`}${next && html`<${Link} class="button" to=${to(next)}>Older</${Link}>`}</p>`}</${Wait}>`;
}
function ConversationRow({ one, content }) {
  const to = (changes) => link("/turns", new URLSearchParams(), { conversation: one.id, ...changes });
  const bad = (n, changes) => html`<td class="n">${n ? html`<${Link} class="mark bad" to=${to(changes)}>${count(n)}</${Link}>` : "0"}</td>`;
  return html`<tr><th scope="row" class="id"><${Link} to=${to()}><bdi>${one.id}</bdi></${Link}></th>${content && html`<td class="said"><bdi>${one.asked ?? ""}</bdi>${one.answered && html`<span class="dim"> → </span><bdi class="dim">${one.answered}</bdi>`}</td>`}<td class="n">${count(one.turns)}</td>${bad(one.failed, { outcome: "fail" })}${bad(one.errors, { error: true })}<td class="n">${cost(one)}</td><td class="n">${seconds(one.duration_s)}</td><td class="n">${time(one.until)}</td></tr>`;
}

function Turn({ turn, at, place, shown, query, chosen }) {
  const to = link(`/turn/${encodeURIComponent(turn.id)}`, query);
  const filter = (name, value) => (value ? html`<${Link} class="pick" to=${link("/turns", query, { [name]: value })}>${value}</${Link}>` : html`<span class="dim">–</span>`);
  const cells = {
    time: () => { const at = time(turn.at); return html`<${Link} to=${to}><span class="wide">${at.slice(0, 5)}</span>${at.slice(5, 16)}<span class="wide">${at.slice(16)}</span></${Link}>`; },
    id: () => html`<code title=${turn.id}>${short(turn.id)}</code>`,
    agent: () => filter("agent", turn.agent),
    model: () => filter("model", turn.model),
    version: () => filter("version", turn.version),
    said: () => html`<bdi>${turn.asked ?? ""}</bdi>${turn.answered && html`<span class="dim"> → </span><bdi class="dim">${turn.answered}</bdi>`}`,
    failed: () => html`${turn.error && html`<span class="mark bad">${turn.error}</span> `}${turn.failed.slice(0, 3).map((metric) => html`<${Link} class="mark bad" to=${link("/turns", query, { metric, outcome: "fail" })}>${metric.replace(/^code_/, "")}</${Link}> `)}${turn.failed.length > 3 && html`<span class="dim">+${turn.failed.length - 3}</span>`}${!turn.failed.length && !turn.error && html`<span class="dim">${turn.scored ? "none" : "not scored"}</span>`}`,
    value: () => (turn.value ? html`<span class=${turn.value.bad ? "bad" : ""}>${turn.value.status === "error" ? "error" : number(turn.value.value, turn.value.unit)}</span>` : html`<span class="dim">–</span>`),
    tools: () => (turn.tools ?? []).slice(0, 3).map((tool) => html`<${Link} class="pick" to=${link("/turns", query, { tool })}>${tool}</${Link}> `),
    duration: () => seconds(turn.duration),
    tokens: () => count(turn.tokens),
    cost: () => cost(turn),
  };
  return html`<div class=${`row ${chosen ? "chosen" : ""}`} role="row" aria-rowindex=${at + 1} aria-selected=${chosen} style=${{ transform: `translateY(${place.top}px)` }}>${shown.map(([name]) => html`<span role="cell" class=${`cell ${name}`}>${cells[name]()}</span>`)}</div>`;
}

// Server-sent events through fetch, because EventSource can't send credentials.
function useLive(on, asked, key, take) {
  useEffect(() => {
    if (!on) return undefined;
    const control = new AbortController();
    const listen = async () => {
      while (!control.signal.aborted) {
        try {
          const response = await fetch(`${API}/live?${asked}`, { signal: control.signal });
          const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
          let text = "";
          for (;;) {
            const { value, done } = await reader.read();
            if (done) break;
            text += value;
            const events = text.split("\n\n");
            text = events.pop();
            for (const event of events) if (event.startsWith("data: ")) take(JSON.parse(event.slice(6)).turns);
          }
        } catch { /* the connection was lost, or the view was closed */ }
        if (!control.signal.aborted) await new Promise((again) => setTimeout(again, 3000));
      }
    };
    listen();
    return () => control.abort();
  }, [on, key, take]);
}
