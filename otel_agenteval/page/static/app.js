// The page: selects the view for an address, and handles the keys that work in every view.
import { Guarded, Link, go, html, link, render, useAddress, useGet, useKeys, useLayoutEffect, useRef, useState } from "./core.js";
import { Compare } from "./compare.js";
import { Differences } from "./differences.js";
import { Fleet } from "./fleet.js";
import { LabelNext } from "./label.js";
import { FailureModes } from "./modes.js";
import { Catalogue, Health } from "./others.js";
import { OneTurn } from "./turn.js";
import { Conversations, Turns } from "./turns.js";

const VIEWS = [["/", "Fleet", "f"], ["/turns", "Turns", "t"], ["/differences", "Differences", "d"], ["/compare", "Compare", "c"], ["/label", "Label", "l"], ["/catalogue", "Metrics", "m"], ["/health", "Health", "h"]];
const FAILURES = ["/failure-modes", "Failure modes", "x"]; // linked from other views, because the navigation has no room for it on a phone
const ALL = [...VIEWS, FAILURES];
const KEYS = [["g f", "fleet"], ["g t", "turns"], ["g d", "differences"], ["g x", "failure modes"], ["g c", "compare"], ["g l", "label"], ["g m", "metrics"], ["g h", "health"], ["/", "search"], ["j / k", "next / previous turn, in the list and on a turn's page"], ["Enter", "open the selected turn"], ["u", "back to the list"], ["l", "live list on and off"], ["p / f", "label: pass / fail"], ["?", "these keys"]];

function App() {
  const address = useAddress();
  const [help, setHelp] = useState(false);
  const facets = useGet("facets");
  const main = useRef(null);
  const first = useRef(true);
  const path = address.path.replace(/\/$/, "") || "/";
  const turn = /^\/turns?\/(.+)$/.exec(path)?.[1];
  useLayoutEffect(() => {
    const view = ALL.find(([one]) => one === path);
    document.title = `${view ? view[1] : turn ? `Turn ${turn.slice(0, 8)}` : "otel-agenteval"} – otel-agenteval`;
    if (first.current) first.current = false;
    else { main.current?.focus({ preventScroll: true }); scrollTo(0, 0); }
  }, [path]);
  const last = useRef("");
  useKeys((event) => {
    if (last.current === "g") { const view = ALL.find(([, , key]) => key === event.key); if (view) { event.stopImmediatePropagation(); event.preventDefault(); go(link(view[0], new URLSearchParams(location.search))); } }
    else if (event.key === "?") setHelp((on) => !on);
    else if (event.key === "Escape") setHelp(false);
    else if (event.key === "/") { event.preventDefault(); const search = document.getElementById("search"); search?.closest("details")?.setAttribute("open", ""); search?.focus(); }
    last.current = last.current === "g" ? "" : event.key;
  }, [], true);
  const shared = { address, facets: facets.value };
  const view = path === "/" ? html`<${Fleet} ...${shared} />` : path === "/turns" ? html`<${address.query.get("group") === "conversation" ? Conversations : Turns} ...${shared} />` : turn ? html`<${OneTurn} ...${shared} written=${turn} />`
    : path === "/differences" ? html`<${Differences} ...${shared} />` : path === "/failure-modes" ? html`<${FailureModes} ...${shared} />` : path === "/compare" ? html`<${Compare} ...${shared} />` : path === "/label" ? html`<${LabelNext} ...${shared} />` : path === "/catalogue" ? html`<${Catalogue} ...${shared} />` : path === "/health" ? html`<${Health} />`
    : html`<h1>Not found</h1><p><${Link} to="/">To the fleet</${Link}></p>`;
  const current = turn ? "/turns" : path === FAILURES[0] ? "/differences" : path;
  return html`<a class="skip" href="#main">To the content</a>
    <header class="top"><${Link} class="brand" to=${link("/", address.query)}>otel-agenteval</${Link}>
      <nav aria-label="Views"><ul>${VIEWS.map(([to, text]) => html`<li><${Link} to=${link(to, address.query)} aria-current=${to === current ? "page" : undefined}>${text}</${Link}></li>`)}</ul></nav>
      <button type="button" class="quiet" onClick=${() => setHelp(!help)} aria-expanded=${help}>Keys <kbd>?</kbd></button></header>
    ${help && html`<section class="help" aria-label="Keys"><dl>${KEYS.map(([keys, what]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}</dl></section>`}
    <main id="main" tabindex="-1" ref=${main}>${facets.error ? html`<h1>otel-agenteval</h1><p class="problem" role="alert">${facets.error}</p>` : html`<${Guarded} key=${path}>${view}</${Guarded}>`}</main>`;
}

render(html`<${App} />`, document.getElementById("app"));
