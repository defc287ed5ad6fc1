// Code that all views share: rendering, the state in the address, requests, and formats of values.
import { createContext, h, render } from "./vendor/preact.js";
import { useCallback, useContext, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

// An agent's content is always shown as text. An object in it that looks like an element must not become one. Only elements
// made here have `constructor: undefined`, because JSON can't contain it.
export const textOf = (value) => (value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2));
const isForeign = (value) => typeof value === "object" && value !== null && value.constructor !== undefined;
const shown = (value) => (Array.isArray(value) ? value.map(shown) : isForeign(value) ? textOf(value) : value);
const OBJECTS = new Set(["style", "ref"]);
function element(type, props, ...children) {
  if (typeof type === "string") for (const name in props) if (isForeign(props[name]) && !OBJECTS.has(name)) props[name] = textOf(props[name]);
  return h(type, props, ...children.map(shown));
}
export const html = htm.bind(element);
export { render, useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState };

// --- the address: contains the path and the filters, so that every view has a link

const BASE = new URL("..", import.meta.url).pathname.slice(0, -1); // not empty behind a proxy that removes a part of the path
export const API = `${BASE}/api/v1`;
const listeners = new Set();
const tell = () => listeners.forEach((listener) => listener());
addEventListener("popstate", tell);

export function where() {
  return { path: location.pathname.slice(BASE.length), query: new URLSearchParams(location.search) };
}

export function go(address, { replace = false } = {}) {
  if (BASE + address === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", BASE + address);
  tell();
}

export function useAddress() {
  const [address, set] = useState(where);
  useEffect(() => {
    const listener = () => set(where());
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return address;
}

// Filters that apply to every view. Each of the other filters belongs to one view.
export const FILTERS = ["since", "until", "agent", "service", "version", "model", "conversation", "metric", "outcome", "severity", "below", "above", "tool", "mode", "fact", "error", "text"];
const OF_SUMS = new Set(["since", "until", "agent", "service", "version", "model", "metric"]);

export function filtersOf(query, only = FILTERS) {
  const found = new URLSearchParams();
  for (const [name, value] of query) if (only.includes(name) && value) found.append(name, value);
  return found;
}
export const sumsOf = (query) => filtersOf(query, [...OF_SUMS]);

export function link(path, query, changes = {}) {
  const found = filtersOf(query);
  for (const [name, value] of Object.entries(changes)) {
    found.delete(name);
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "" && one !== false) found.append(name, textOf(one));
  }
  const text = found.toString();
  return text ? `${path}?${text}` : path;
}

// A link that changes the view without loading a page. With a modifier key, the browser opens a new tab as usual.
export function Link({ to, children, onClick, ...more }) {
  const press = (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onClick?.(event);
    go(to);
  };
  return html`<a href=${BASE + to} onClick=${press} ...${more}>${children}</a>`;
}

// --- requests

const kept = new Map();
const MOST_KEPT = 60;

export async function get(path, { signal } = {}) {
  const before = kept.get(path);
  const headers = before ? { "if-none-match": before.etag } : {};
  const response = await fetch(`${API}/${path}`, { headers, signal, cache: "no-store" });
  if (response.status === 304 && before) return before.value;
  const value = await response.json().catch((error) => {
    if (response.ok) throw error; // canceled or cut off: a partial response is an error
    return { error: `status ${response.status}` };
  });
  if (!response.ok) throw new Error(value.error || `status ${response.status}`);
  kept.delete(path);
  kept.set(path, { etag: response.headers.get("etag"), value });
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  return value;
}

export async function post(path, body) {
  const response = await fetch(`${API}/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const value = await response.json();
  if (!response.ok) throw new Error(value.error);
  return value;
}

// The response to a path: { value, error, busy }. While a new value loads, the old value stays.
export function useGet(path, version = 0) {
  const [state, set] = useState({ value: null, error: null, busy: true, path: null });
  useEffect(() => {
    if (path === null) return undefined;
    const control = new AbortController();
    set((old) => ({ ...old, busy: true }));
    get(path, { signal: control.signal }).then(
      (value) => set({ value, error: null, busy: false, path }),
      (error) => error.name === "AbortError" || set({ value: null, error: error.message, busy: false, path }),
    );
    return () => control.abort();
  }, [path, version]);
  return state;
}

// A turn that can't be drawn must not break the whole page.
export function Guarded({ children }) {
  const [error] = useErrorBoundary();
  return error ? html`<p class="problem" role="alert">This view can't be shown: ${error.message}</p>` : children;
}

export function Wait({ of, children }) {
  if (of.error) return html`<p class="problem" role="alert">${of.error}</p>`;
  if (!of.value) return html`<p class="dim" role="status">Loading …</p>`;
  return html`<div class=${of.busy ? "busy" : ""} aria-busy=${of.busy}>${children(of.value)}</div>`;
}

// --- formats of values

const whole = new Intl.NumberFormat("en");
export const count = (n) => (n === null || n === undefined ? "–" : whole.format(Math.round(n)));
// A share just below 100 % isn't rounded to 100 %.
export function percent(x, digits = 0) {
  if (x === null || x === undefined) return "–";
  const more = [0, 1, 2, 3].find((n) => digits + n === 3 || Math.abs(x) >= 1 || Number((100 * x).toFixed(digits + n)) < 100);
  return `${(100 * x).toFixed(digits + more)} %`;
}
export const short = (id) => (id ? `${id.slice(0, 8)}` : "–");

export function number(value, unit = "1") {
  if (value === null || value === undefined) return "–";
  if (unit === "s") return seconds(value);
  if (unit === "USD") return dollars(value);
  const size = Math.abs(value);
  const text = size >= 1000 ? count(value) : Number.isInteger(value) ? String(value) : value.toPrecision(size < 0.95 ? 2 : 3);
  return unit === "1" ? text : `${text} ${unit.replace(/^\{(.*)\}$/, value === 1 ? "$1" : "$1s")}`;
}
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 0.001) return "<1 ms";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  return value < 120 ? `${value.toFixed(value < 10 ? 2 : 1)} s` : `${(value / 60).toFixed(1)} min`;
}
export const dollars = (value) => (value === null || value === undefined ? "–" : value < 0 ? `-${dollars(-value)}` : value === 0 ? "$0" : value < 0.1 ? `$${Number(value.toPrecision(2))}` : `$${value.toFixed(2)}`);
export const cost = (of) => (of.cost_usd !== null && of.cost_usd !== undefined && of.cost_estimated ? html`<span title="estimated from tokens and prices">≈${dollars(of.cost_usd)}</span>` : dollars(of.cost_usd));
export function time(at, withDay = true) {
  if (at === null || at === undefined) return "–";
  const text = new Date(at * 1000).toISOString();
  return withDay ? `${text.slice(0, 10)} ${text.slice(11, 19)}` : text.slice(11, 19);
}
export const bytes = (n) => (n < 1000 ? `${n} B` : n < 1e6 ? `${(n / 1000).toFixed(0)} kB` : `${(n / 1e6).toFixed(1)} MB`);
export const points = (x) => `${x > 0 ? "+" : ""}${(100 * x).toFixed(1)} pp`;
export const isBad = (score) => score.status === "error" || (score.passed === false && score.direction !== "neutral");

export const isWorse = (mode) => mode.trend === "new" || mode.trend === "growing";
export const modeName = ({ kind, step, error }) => `${step ? `${kind}: ${step}` : kind}${error ? ` (${error})` : ""}`;

// Calls `press` for keys that aren't typed into a field. It listens before the next frame, so that keys apply to the shown view.
export function useKeys(press, what, capture = false) {
  useLayoutEffect(() => {
    const listen = (event) => event.target.closest?.("input, select, textarea") || event.metaKey || event.ctrlKey || event.altKey || press(event);
    addEventListener("keydown", listen, capture);
    return () => removeEventListener("keydown", listen, capture);
  }, what);
}

// Opens all folded parts that contain an element.
function unfold(element) {
  for (let outer = element?.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
}
// Scrolls to the element of a path, such as a step, and focuses it.
export function reach(path) {
  const element = path && document.querySelector(`[data-path~="${CSS.escape(path)}"]`);
  unfold(element);
  element?.scrollIntoView({ block: "center" });
  element?.focus({ preventScroll: true });
}

// --- small components

export function Copy({ text, children, label }) {
  const [done, set] = useState(false);
  const press = async () => {
    await navigator.clipboard?.writeText(typeof text === "function" ? await text() : text).catch(() => {});
    set(true);
    setTimeout(() => set(false), 1200);
  };
  return html`<button type="button" class="quiet" onClick=${press} aria-label=${label}>${done ? "Copied" : children}</button>`;
}

// A value that becomes a filter when it is clicked.
export function Pick({ query, path = "/turns", name, value, children }) {
  if (value === null || value === undefined || value === "") return html`<span class="dim">–</span>`;
  return html`<${Link} class="pick" to=${link(path, query, { [name]: value })} title=${`Only ${name} ${value}`}>${children ?? value}</${Link}>`;
}

export function Mark({ score }) {
  const bad = isBad(score);
  const word = score.status === "error" ? "error" : score.passed === null || score.direction === "neutral" ? score.label ?? "" : score.passed ? "pass" : "fail";
  return html`<span class=${`mark ${bad ? "bad" : score.passed && score.direction !== "neutral" ? "good" : ""}`}>${word}</span>`;
}

// Rows of equal height. Only visible rows exist. `row(i)` makes a row. `onEnd` is called when the last rows are nearly visible.
export function Rows({ total, height, row, onEnd, selected = -1, label, role = "rowgroup", overscan = 12 }) {
  const frame = useRef(null);
  const [view, set] = useState({ top: 0, size: 800 });
  useLayoutEffect(() => {
    const element = frame.current;
    const look = () => set((old) => {
      const first = Math.floor(element.scrollTop / height);
      return old.top === first && old.size === element.clientHeight ? old : { top: first, size: element.clientHeight };
    });
    look();
    element.addEventListener("scroll", look, { passive: true });
    const watch = new ResizeObserver(look);
    watch.observe(element);
    return () => { element.removeEventListener("scroll", look); watch.disconnect(); };
  }, [height]);
  useEffect(() => {
    const element = frame.current;
    if (selected < 0 || !element) return;
    const top = selected * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + element.clientHeight) element.scrollTop = top + height - element.clientHeight;
  }, [selected, height]);
  const first = Math.max(0, view.top - overscan);
  const last = Math.min(total, view.top + Math.ceil(view.size / height) + overscan);
  useEffect(() => { if (last >= total - 50) onEnd?.(); }, [last, total]);
  const shown = [];
  for (let i = first; i < last; i += 1) shown.push(row(i, { top: i * height, height }));
  return html`<div class="rows" ref=${frame} role=${role} aria-label=${label} tabindex="0">
    <div class="all-rows" role="presentation" style=${{ height: `${total * height}px` }}>${shown}</div>
  </div>`;
}

// The values of a turn that findings are about: path → { text, isText, marks }, and the mark to scroll to. See evidence.js.
export const Places = createContext({ byPath: new Map(), markOf: new Map(), aim: null, show: () => {} });

// The marks of several paths whose texts are equal.
export function useMarks(...paths) {
  const { byPath, aim } = useContext(Places);
  const found = paths.map((path) => byPath.get(path)).filter(Boolean);
  const marks = found.flatMap((place) => place.marks);
  return { marks, place: found[0], aim: aim && marks.includes(aim.mark) ? aim : null };
}

// Splits the text wherever a mark begins or ends, so that marks may overlap.
function pieces(text, marks) {
  const edges = [...new Set([0, text.length, ...marks.flatMap((mark) => [mark.from, mark.to])])].sort((a, b) => a - b);
  return edges.slice(1).map((to, i) => {
    const from = edges[i], over = marks.filter((mark) => mark.from < to && mark.to > from), part = text.slice(from, to);
    const severity = ["critical", "warning", "info", "compared"].find((one) => over.some((mark) => mark.severity === one));
    return over.length ? html`<mark class=${severity} data-from=${from} tabindex="-1" title=${[...new Set(over.map((mark) => mark.title))].join("\n")}>${part}</mark>` : part;
  });
}

// Text of any length: shows the beginning, and the rest on demand.
const AT_FIRST = 4000;
export function Text({ text, mono = false, marks = [], aim = null }) {
  const [all, set] = useState(false);
  const frame = useRef(null), reached = useRef(null);
  const end = all || text.length <= AT_FIRST ? text.length : AT_FIRST;
  const aimed = aim && marks.find((mark) => (mark.of ?? mark) === aim.mark);
  useLayoutEffect(() => {
    if (!aimed || reached.current === aim) return;
    if (aimed.from >= end) { set(true); return; }
    reached.current = aim;
    unfold(frame.current);
    const mark = frame.current.querySelector(`mark[data-from="${aimed.from}"]`);
    (mark ?? frame.current).scrollIntoView({ block: "center", inline: "nearest" });
    mark?.focus({ preventScroll: true });
  }, [aim, aimed, end]);
  const hidden = marks.filter((mark) => mark.from >= end && mark.severity !== "compared").length;
  const shown = marks.filter((mark) => mark.from < end).map((mark) => (mark.to > end ? { ...mark, to: end } : mark));
  return html`<div class=${`text ${mono ? "mono" : ""}`} dir="auto" ref=${frame}>${pieces(text.slice(0, end), shown)}${end < text.length && html`<span class="dim"> …</span>
    <button type="button" class="quiet" onClick=${() => set(true)}>Show all of it (${bytes(text.length)}${hidden ? `, ${findings(hidden)}` : ""})</button>`}</div>`;
}

// Compact JSON over several lines, with its marks at their new positions.
export function spread(text, marks) {
  let out = "", depth = 0, quoted = false;
  const places = [];
  const line = (by) => { depth += by; out += `\n${"  ".repeat(depth)}`; };
  for (let i = 0; i < text.length; i += 1) {
    const sign = text[i], empty = (sign === "{" && text[i + 1] === "}") || (sign === "[" && text[i + 1] === "]");
    if (!quoted && (sign === "}" || sign === "]") && !"{[".includes(text[i - 1])) line(-1);
    places.push(out.length);
    out += sign;
    if (quoted) {
      if (sign === "\\") { i += 1; places.push(out.length); out += text[i]; } else if (sign === '"') quoted = false;
    } else if (sign === '"') quoted = true;
    else if (sign === ",") line(0);
    else if (sign === ":") out += " ";
    else if ((sign === "{" || sign === "[") && !empty) line(1);
  }
  return { text: out, marks: marks.map((mark) => ({ ...mark, of: mark, from: places[mark.from], to: mark.to > mark.from ? places[mark.to - 1] + 1 : places[mark.from] })) };
}
const findings = (n) => `${count(n)} ${n === 1 ? "finding" : "findings"}`;

// JSON that is formatted when it is opened.
export function Json({ value, summary, path }) {
  const [open, set] = useState(false);
  const { marks, place, aim } = useMarks(path);
  useLayoutEffect(() => { if (aim) set(true); }, [aim]);
  const written = () => (place && !place.isText ? spread(place.text, marks) : { text: typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "", marks });
  const found = marks.filter((mark) => mark.severity !== "compared").length;
  return html`<details open=${open} onToggle=${(event) => set(event.currentTarget.open)}>
    <summary>${summary}${found > 0 && html` <span class="small">(${findings(found)})</span>`}</summary>${open && html`<${Text} mono aim=${aim} ...${written()} />`}
  </details>`;
}
