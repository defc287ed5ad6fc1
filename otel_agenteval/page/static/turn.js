// One turn: its messages, steps, scores with their reasons, and position in the conversation.
import { Copy, Json, Link, Mark, Pick, Places, Rows, Text, Wait, bytes, cost, count, dollars, filtersOf, get, go, html, isBad, link, modeName, number, percent, reach, seconds, short, spread, sumsOf, textOf, time, useContext, useLayoutEffect, useGet, useKeys, useMarks, useMemo, useState, where } from "./core.js";
import { Evidence, Findings } from "./evidence.js";
import { LabelForm } from "./label.js";

export function OneTurn({ address, facets, written }) {
  const { query } = address, id = decodeURIComponent(written);
  const [version, again] = useState(0);
  const found = useGet(`turns/${encodeURIComponent(id)}`, version);
  const asked = filtersOf(query).toString();
  const beside = useGet(found.value && found.path?.includes(encodeURIComponent(id)) ? `turns/${encodeURIComponent(id)}/neighbours${asked ? `?${asked}` : ""}` : null);
  const to = (other) => (other ? link(`/turn/${encodeURIComponent(other)}`, query) : null);
  const known = beside.path?.includes(encodeURIComponent(id)) ? beside.value : null; // the previous turn's neighbors would be wrong here
  const newer = to(known?.newer), older = to(known?.older);
  useKeys((event) => {
    if (where().path !== address.path) return; // another turn is loading, so its neighbors aren't known yet
    if (event.key === "k" && newer) go(newer);
    else if (event.key === "j" && older) go(older);
    else if (event.key === "u") go(link("/turns", query));
  }, [newer, older, address]);
  const step = (target, text, key) => (target ? html`<${Link} class="button" to=${target} aria-keyshortcuts=${key}>${text}</${Link}>` : html`<span class="button off" aria-disabled="true">${text}</span>`);
  return html`<nav class="bar" aria-label="Turns of this filter"><${Link} to=${link("/turns", query)}>‹ All turns${asked ? " of this filter" : ""}</${Link}> ${step(newer, "Newer", "k")} ${step(older, "Older", "j")}</nav>
    <${Wait} of=${found}>${(all) => html`<${Findings} all=${all}><${Shown} all=${all} query=${query} facets=${found.busy ? null : facets} again=${() => again((n) => n + 1)} /></${Findings}>`}</${Wait}>`;
}

function Shown({ all, query, facets, again }) {
  const { turn, content, scores } = all;
  const step = query.get("step");
  useLayoutEffect(() => reach(step), [step]);
  const bad = scores.filter(isBad);
  return html`<header class="turn-head">
      <h1>Turn <code title=${turn.turn_id}>${short(turn.turn_id)}</code> ${turn.error && html`<span class="mark bad">${turn.error}</span>`} ${bad.length > 0 ? html`<span class="mark bad">${bad.length} failed</span>` : scores.length > 0 && html`<span class="mark good">nothing failed</span>`}</h1>
      <dl class="facts">
        <div><dt>agent</dt><dd><${Pick} query=${query} name="agent" value=${turn.agent} /></dd></div>
        <div><dt>model</dt><dd><${Pick} query=${query} name="model" value=${turn.model} /></dd></div>
        <div><dt>service</dt><dd><${Pick} query=${query} name="service" value=${turn.service} /> ${turn.service_version && html`<${Pick} query=${query} name="version" value=${turn.service_version} />`}</dd></div>
        <div><dt>began (UTC)</dt><dd>${time(turn.start)}</dd></div><div><dt>took</dt><dd>${seconds(turn.duration_s)}</dd></div>
        <div><dt>tokens</dt><dd>${count(turn.input_tokens)} in, ${count(turn.output_tokens)} out</dd></div><div><dt>cost</dt><dd>${cost(turn)}</dd></div>
        ${all.first_fault && html`<div><dt>first fault</dt><dd><${FirstFault} fault=${all.first_fault} to=${content && link(`/turn/${encodeURIComponent(turn.turn_id)}`, query, { step: all.first_fault.path })} /></dd></div>`}
        ${turn.failed && turn.mode && html`<div><dt>failure mode</dt><dd><${Link} to=${link("/failure-modes", sumsOf(query), { mode: turn.mode })}><bdi>${modeName(turn.fault)}</bdi></${Link}></dd></div>`}
        <div><dt>closed by</dt><dd>${turn.close_reason ?? "–"}${turn.complete === false && html` <span class="mark warn">incomplete</span>`}${turn.revision > 1 && ` , revision ${turn.revision}`}</dd></div>
        ${content?.reading === "inferred" && html`<div><dt>reading</dt><dd><span class="mark" title="Inferred from the structure of its spans, without a parser for the framework">inferred</span></dd></div>`}
      </dl>
      <div class="bar">
        ${all.trace_url && html`<a class="button" href=${all.trace_url} target="_blank" rel="noreferrer noopener">Trace ↗</a>`}
        <${Copy} text=${turn.turn_id}>Copy id</${Copy}><${Copy} text=${`otel-agenteval why ${turn.turn_id}`}>Copy why command</${Copy}><${Copy} text=${location.href}>Copy link</${Copy}>
        ${content && html`<${Copy} text=${async () => JSON.stringify(await get(`turns/${encodeURIComponent(turn.turn_id)}/case`), null, 2)}>Copy as test case</${Copy}>`}
        <${Link} class="button" to=${`/compare?${new URLSearchParams({ a: turn.turn_id })}`}>Compare …</${Link}>
      </div>
    </header>
    ${content && html`<${Steps} content=${content} aimed=${step} fault=${all.first_fault?.path} to=${(path) => link(`/turn/${encodeURIComponent(turn.turn_id)}`, query, { step: path })} />`}
    ${all.conversation && all.conversation.turns.length > 1 && html`<${Conversation} found=${all.conversation} id=${turn.turn_id} query=${query} />`}
    <div class="two">
      <section aria-labelledby="said"><h2 id="said">Conversation</h2><${Chat} content=${content} kept=${all.content_kept} step=${step} />${content && html`<${References} content=${content} />`}</section>
      <section aria-labelledby="scores"><h2 id="scores">Scores</h2>
        ${facets?.labels && html`<${LabelForm} turnId=${turn.turn_id} scores=${scores} labels=${all.labels} done=${again} />`}
        <${Scores} all=${all} query=${query} /></section>
    </div>
    ${content?.spans?.length > 0 && html`<${Spans} spans=${content.spans} />`}`;
}

function FirstFault({ fault, to }) {
  const inside = html`<span class="mark bad"><bdi>${fault.reason}</bdi></span> <code class="small">${fault.path}</code>`;
  return to ? html`<${Link} to=${to} onClick=${() => reach(fault.path)}>${inside}</${Link}>` : inside;
}

function Conversation({ found, id, query }) {
  const at = found.turns.findIndex((turn) => turn.turn_id === id);
  const to = (turn) => link(`/turn/${encodeURIComponent(turn.turn_id)}`, query);
  return html`<nav class="conversation" aria-label="Conversation"><span class="dim">Turn ${at + 1} of ${found.turns.length} in conversation</span> <${Pick} query=${query} name="conversation" value=${found.id} />
    <ol>${found.turns.map((turn, i) => html`<li><${Link} to=${to(turn)} class=${`dot ${turn.failed.length ? "bad" : "good"}`} aria-current=${i === at ? "true" : undefined} title=${`${time(turn.at)}${turn.failed.length ? `: ${turn.failed.join(", ")} failed` : ""}`}>${i + 1}</${Link}></li>`)}</ol></nav>`;
}

// --- messages

const BASE64 = /^(?:data:([\w/+.-]+);base64,)?([A-Za-z0-9+/]{200,}={0,2})$/;

// `paths` are the paths of the value in the turn, for its marks. A value that isn't text is marked in its JSON.
export function Said({ value, paths = [] }) {
  const { marks, place, aim } = useMarks(...paths);
  if (place && !place.isText) return html`<${Text} ...${spread(place.text, marks)} aim=${aim} />`;
  if (Array.isArray(value)) return value.map((part) => html`<${Part} part=${part} />`);
  const text = textOf(value);
  const media = marks.length === 0 && BASE64.exec(text);
  return media ? html`<${Media} type=${media[1] ?? "base64"} data=${media[2]} />` : html`<${Text} text=${text} marks=${marks} aim=${aim} />`;
}
// The marked values below a path, except the paths in `but`, which are shown elsewhere.
function Below({ path, but = [] }) {
  const { byPath } = useContext(Places);
  const found = [...byPath.keys()].filter((one) => one.startsWith(`${path}.`) && !but.includes(one));
  return found.map((one) => html`<${Json} key=${one} value=${byPath.get(one).text} summary=${one.slice(path.length + 1)} path=${one} />`);
}
function Part({ part }) {
  if (part === null || typeof part !== "object") return html`<${Said} value=${part} />`;
  const data = part.data ?? part.image_url?.url ?? part.source?.data;
  if (typeof data === "string" && data.length > 200) {
    const media = BASE64.exec(data);
    if (media) return html`<${Media} type=${textOf(part.mime_type ?? media[1] ?? part.source?.media_type ?? part.type ?? "data")} data=${media[2]} />`;
  }
  return typeof part.text === "string" ? html`<${Text} text=${part.text} />` : html`<${Json} value=${part} summary=${part.type ?? "part"} />`;
}
function Media({ type, data }) {
  const [open, set] = useState(false);
  const image = /^image\/(png|jpeg|gif|webp)$/.test(type);
  return html`<div class="media"><span class="mark">${type}</span> ${bytes(Math.round(data.length * 0.75))} ${image && html`<button type="button" class="quiet" onClick=${() => set(!open)}>${open ? "Hide" : "Show"}</button>`}${open && html`<img alt=${`${type} of this message`} src=${`data:${type};base64,${data}`} />`}</div>`;
}

function Chat({ content, kept, step }) {
  const { byPath } = useContext(Places);
  if (!content) return html`<p class="dim">${kept ? "Messages are stored but hidden. Set serve.page.content to show them." : "Messages aren't stored. Set outlets.store.content to store them."}</p>`;
  const messages = content.messages ?? [];
  const last = messages.at(-1);
  const answered = last?.role === "assistant" && textOf(last.content) === textOf(content.output);
  const asked = messages.findLastIndex((message) => message.role === "user" && textOf(message.content) === textOf(content.input));
  const nothing = content.output === undefined || content.output === null;
  return html`<ol class="chat" tabindex="-1" data-path=${nothing ? "output" : undefined}>
    ${content.system && html`<li class="message system"><span class="who">system</span><${Json} value=${content.system} summary=${`${bytes(textOf(content.system).length)}, show`} path="system" /></li>`}
    ${(messages.length === 0 || (asked < 0 && byPath.has("input"))) && content.input !== undefined && html`<li class="message user"><span class="who">user</span><${Said} value=${content.input} paths=${["input"]} /></li>`}
    ${messages.map((message, i) => html`<${Message} message=${message} step=${step} path=${`messages[${i}]`} paths=${[...(i === asked ? ["input"] : []), ...(answered && message === last ? ["output"] : [])]} />`)}
    ${content.reasoning && html`<li class="message reasoning"><span class="who">reasoning</span><${Said} value=${content.reasoning} paths=${["reasoning"]} /></li>`}
    ${!nothing && !answered && html`<li data-path="output" tabindex="-1" class=${`message assistant answer ${step === "output" ? "chosen" : ""}`}><span class="who">answer</span><${Said} value=${content.output} paths=${["output"]} /></li>`}
    ${content.error && html`<li class="message error"><span class="who">error</span><${Said} value=${content.error.message ?? content.error} paths=${["error.message"]} /></li>`}
  </ol>`;
}
function Message({ message, path, paths, step }) {
  const { byPath } = useContext(Places);
  const same = (value) => [...byPath].filter(([one, place]) => one.startsWith("tool_calls[") && place.text === (place.isText ? value : JSON.stringify(value))).map(([one]) => one);
  const results = message.tool_results ?? [], own = `${path}.content`, places = [path, ...paths];
  const twice = results.length === 1 && textOf(results[0].result) === textOf(message.content);
  return html`<li data-path=${places.join(" ")} tabindex="-1" class=${`message ${["user", "assistant", "system", "tool"].includes(message.role) ? message.role : "other"} ${places.includes(step) ? "chosen" : ""}`}><span class="who">${message.role}</span>
    ${message.content !== undefined && message.content !== "" && !twice && html`<${Said} value=${message.content} paths=${[...paths, own, ...same(message.content)]} />`}
    ${(message.tool_calls ?? []).map((call) => html`<div class="call"><span class="mark">calls</span> <code>${call.name}</code><${Json} value=${call.arguments ?? {}} summary="arguments" /></div>`)}
    ${results.map((one) => html`<div class="call"><span class="mark">result</span> <${Said} value=${one.result} paths=${same(one.result)} /></div>`)}<${Below} path=${path} but=${twice ? [] : [own]} /></li>`;
}

const EXPECTED = ["ground_truth", "references", "relevant_ids", "retrieved_ids", "context", "history"];
const ELSEWHERE = /^(input|output|reasoning|system|error\.message|(messages|agent_runs|llm_calls|tool_calls|retrievals|handoffs)\[.*)$/; // paths whose marks are shown in other sections
function References({ content }) {
  const { byPath } = useContext(Places);
  const found = EXPECTED.filter((name) => content[name] && (typeof content[name] !== "object" || Object.keys(content[name]).length));
  const marked = [...byPath.keys()].filter((path) => !ELSEWHERE.test(path) && !found.includes(path));
  if (!found.length && !marked.length) return null;
  return html`<h2>Reference data</h2><dl class="attributes">${found.map((name) => html`<div><dt><code>${name}</code></dt><dd>${typeof content[name] === "string" ? html`<${Said} value=${content[name]} paths=${[name]} />` : html`<${Json} value=${content[name]} summary="show" path=${name} />`}</dd></div>`)}
    ${marked.map((path) => html`<div key=${path}><dt><code>${path}</code></dt><dd><${Said} value=${byPath.get(path).text} paths=${[path]} /></dd></div>`)}</dl>`;
}

// --- scores

function Scores({ all, query }) {
  const order = (score) => (isBad(score) ? 0 : score.evidence.length ? 1 : score.kind === "code" ? 3 : 2);
  const scores = [...all.scores].sort((a, b) => order(a) - order(b) || a.metric.localeCompare(b.metric));
  const known = new Set(scores.map((score) => score.metric));
  const others = Object.entries(all.outcomes).filter(([metric]) => !known.has(metric)).sort();
  const list = (some) => some.length > 0 && html`<ul class="scores">${some.map((score) => html`<${OneScore} score=${score} query=${query} kept=${all.content !== null} />`)}</ul>`;
  const folded = scores.filter((score) => order(score) > 1), passed = folded.filter((score) => score.passed && score.direction !== "neutral").length;
  return html`${list(scores.filter((score) => order(score) < 2))}
    ${folded.length > 0 && html`<details class="folded"><summary>${[passed && `${count(passed)} passed`, folded.length > passed && `${count(folded.length - passed)} measured`].filter(Boolean).join(", ")}</summary>${list(folded)}</details>`}
    ${scores.length === 0 && html`<p class="dim">No scores.</p>`}
    ${others.length > 0 && html`<details class="why"><summary>Metrics without a score: ${others.length}</summary><dl>${others.map(([metric, why]) => html`<div><dt><code>${metric}</code></dt><dd>${why}</dd></div>`)}</dl></details>`}`;
}
function Question({ turnId, metric, version }) {
  const [open, set] = useState(false);
  const found = useGet(open ? `turns/${encodeURIComponent(turnId)}/question?metric=${encodeURIComponent(metric)}` : null);
  return html`<details onToggle=${(event) => set(event.currentTarget.open)}><summary>judge call</summary>${open && html`<${Wait} of=${found}>${(one) => one.sent.length > 0 ? html`<p class="dim">As ${one.sent.length === 1 ? "it was" : "they were"} sent.</p><${Json} value=${one.system} summary="instructions for every judge" />
    ${one.sent.map((each, i) => html`<p>${one.sent.length > 1 ? `${i + 1}. ` : ""}<strong>${each.stage}</strong> <span class="dim">${each.model}</span></p><${Text} mono text=${each.question} />${each.reply === null ? html`<p class="dim">The judge didn't reply.</p>` : html`<${Json} value=${each.reply} summary="reply" />`}`)}` : html`<p class="dim">The judge call isn't stored. This is the first judge call as it would be sent today.</p>${one.version !== version && html`<p class="dim">It uses prompt version ${one.version}. The score is from version ${version}.</p>`}<${Json} value=${one.system} summary="instructions for every judge" /><${Text} mono text=${one.question} />`}</${Wait}>`}</details>`;
}
export function OneScore({ score, query, kept }) {
  const bad = isBad(score);
  const bound = score.threshold === null ? "" : `${score.direction === "down" ? "at most" : "at least"} ${number(score.threshold, score.unit)} passes`;
  return html`<li class=${bad ? "bad" : ""}>
    <div class="score-head"><${Link} to=${link("/turns", query, { metric: score.metric, outcome: score.status === "error" ? "error" : bad ? "fail" : null })}><code>${score.metric}</code></${Link}> <${Mark} score=${score} /> <strong>${score.status === "error" ? score.error_type : score.type === "boolean" ? "" : number(score.value, score.unit)}</strong>${score.policy === "gate" && html` <span class="mark warn">gate</span>`}</div>
    ${score.explanation && html`<p dir="auto">${score.explanation}</p>`}
    <${Evidence} score=${score} />
    <details><summary class="dim">${[bound, score.judge_model, score.sample_probability !== null && score.sample_probability < 1 ? `1 turn in ${number(1 / score.sample_probability)} is judged` : ""].filter(Boolean).join(", ") || "details"}</summary>
      <dl class="facts">
        <div><dt>version</dt><dd>${score.version ?? "–"}</dd></div>${score.judge_model && html`<div><dt>judge</dt><dd>${score.judge_model}, ${dollars(score.judge_cost_usd)}</dd></div>`}
        ${score.sample_probability !== null && html`<div><dt>sampling probability</dt><dd>${percent(score.sample_probability, 1)}, by ${score.sample_decided_by ?? "rate"}</dd></div>`}
        <div><dt>scored</dt><dd>${time(score.scored_at)}</dd></div><div><dt>result id</dt><dd><code>${score.result_id}</code></dd></div>
        <div><dt>reference</dt><dd><${Link} to=${`/catalogue?q=${encodeURIComponent(score.metric.split(".")[0])}`}>what it means</${Link}></dd></div>
      </dl>
      ${score.kind === "llm" && kept && html`<${Question} turnId=${score.turn_id} metric=${score.metric} version=${score.version} />`}
      ${score.detail && html`<${Json} value=${score.detail} summary="detail" />`}${score.also && html`<${Json} value=${score.also} summary="companion scores" />`}</details></li>`;
}

// --- steps

function Steps({ content, aimed, fault, to }) {
  const { byPath } = useContext(Places);
  const [folded, fold] = useState(new Set());
  const found = useMemo(() => stepsOf(content), [content]);
  const marked = useMemo(() => new Set([...byPath.keys()].map((path) => path.split(".")[0])), [byPath]);
  if (!found) return null;
  const { steps, scale, inTime, begun, isInferred } = found;
  const hidden = (step) => step.within.some((path) => folded.has(path));
  const shown = steps.filter((step, i) => step.path === aimed || marked.has(step.path) || (i < 500 && !hidden(step)));
  const turn = (path) => fold((old) => { const next = new Set(old); if (!next.delete(path)) next.add(path); return next; });
  const parents = steps.filter((step) => step.below > 0).map((step) => step.path);
  return html`<section aria-labelledby="steps"><details class="waterfall" open><summary><h2 id="steps" class="inline">Steps</h2> <span class="dim small">${count(steps.length)}${inTime ? ` in ${seconds(scale.all)}: when each began and how long it took` : ". Bars show each step's share of the turn"}</span></summary>
    ${parents.length > 0 && html`<button type="button" class="quiet small" onClick=${() => fold(new Set(folded.size ? [] : parents))}>${folded.size ? "Unfold all" : "Fold all"}</button>`}
    <ol class="steps">${shown.map((step) => html`<li key=${step.path} data-path=${step.path} tabindex="-1" class=${`${step.error || step.path === fault ? "bad" : ""} ${step.path === aimed ? "chosen" : ""}`} style=${{ "--in": `${Math.min(step.within.length, 8) * 14}px` }}>
    <span class="step-name">${step.below > 0 ? html`<button type="button" class="quiet fold" aria-expanded=${!folded.has(step.path)} aria-label=${`Steps within ${textOf(step.name ?? step.kind)}`} onClick=${() => turn(step.path)}>${folded.has(step.path) ? "▸" : "▾"}</button>` : html`<span class="fold"></span>`}<span class="mark">${step.kind}</span> <${Link} to=${to(step.path)} aria-current=${step.path === aimed ? "true" : undefined}><code>${step.name ?? "–"}</code></${Link}>${isInferred(step) && html` <${Inferred} />`}${folded.has(step.path) && html` <span class="dim small">${count(step.below)} within</span>`}</span> <span class="used dim small">${used(step)}</span> <${TimeBar} scale=${scale} start=${inTime ? begun(step) : 0} duration=${step.duration_s} /> <span class="n">${seconds(step.duration_s)}</span>
    ${step.error && html`<span class="bad small">${textOf(step.error.type)} ${textOf(step.error.message ?? (typeof step.error === "string" ? step.error : ""))}</span>`}
    ${step.kind === "tool" && html`<div class="step-texts">${step.arguments !== undefined && html`<${Json} value=${step.arguments} summary="arguments" path=${`${step.path}.arguments`} />`}${step.result !== undefined && html`<${Json} value=${step.result} summary="result" path=${`${step.path}.result`} />`}</div>`}
    ${step.kind === "retrieval" && html`<div class="step-texts"><${Json} value=${step.documents ?? []} summary=${`${count((step.documents ?? []).length)} documents`} path=${`${step.path}.documents`} /></div>`}
    <${Below} path=${step.path} but=${["arguments", "result", "documents"].map((name) => `${step.path}.${name}`)} /></li>`)}</ol>${steps.length > 500 && html`<p class="dim">Only the first 500 of ${count(steps.length)} steps are shown. The trace has all of them.</p>`}</details></section>`;
}

// A step's tokens, cost (including the steps within it), time to the first token and end, if known.
function used(step) {
  const of = step.below ? step.sums : step, part = (n, what) => (n > 0 ? ` (${count(n)} ${what})` : "");
  const tokens = [[of.input_tokens, "in", part(of.cached_tokens, "cached")], [of.output_tokens, "out", part(of.reasoning_tokens, "reasoning")]].filter(([n]) => (n ?? null) !== null).map(([n, ...what]) => `${count(n)} ${what.join("")}`);
  return [...tokens, of.cost_usd > 0 && dollars(of.cost_usd), (step.time_to_first_token_s ?? null) !== null && `first token ${seconds(step.time_to_first_token_s)}`, step.finish_reason && textOf(step.finish_reason)].filter(Boolean).join(", ");
}

const SUMMED = ["input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd"], KINDS = [["agent_runs", "agent"], ["llm_calls", "model", "model"], ["tool_calls", "tool"], ["retrievals", "retrieval", "query"], ["handoffs", "hand-off", "to"]]; // what names them
// The steps in order of time, each with the paths of the steps that contain it, and the number of steps within it.
function stepsOf(content) {
  const steps = KINDS.flatMap(([list, kind, named]) => (content[list] ?? []).map((one, i) => ({ kind, path: `${list}[${i}]`, name: textOf(one[named]).slice(0, 80) || null, ...one })));
  if (!steps.length) return null;
  const spans = new Map((content.spans ?? []).map((span, i) => [span.id, { ...span, place: i }]));
  const begun = (step) => spans.get(step.span_id)?.start_s ?? Infinity;
  const place = (step) => spans.get(step.span_id)?.place ?? Infinity;
  const compare = (a, b) => (a === b ? 0 : a - b);
  steps.sort((a, b) => compare(begun(a), begun(b)) || compare(place(a), place(b)));
  const inTime = steps.some((step) => begun(step) < Infinity);
  const scale = timeScale(inTime ? steps.map((step) => ({ start_s: begun(step), duration_s: step.duration_s })) : steps, content.duration_s);
  const ofSpan = new Map(steps.map((step) => [step.span_id, step]));
  for (const step of steps) Object.assign(step, { within: [], below: 0, sums: { ...step } });
  for (const step of steps) {
    let span = spans.get(step.span_id);
    for (let far = 0; span?.parent && far < 100; far += 1) {
      const outer = ofSpan.get((span = spans.get(span.parent))?.id);
      if (outer && outer !== step) { step.within.push(outer.path); outer.below += 1; for (const name of SUMMED) if ((step[name] ?? null) !== null) outer.sums[name] = (outer.sums[name] ?? 0) + step[name]; }
    }
  }
  return { steps, scale, inTime, begun, isInferred: (step) => spans.get(step.span_id)?.inferred };
}

const Inferred = () => html`<span class="mark" title="Inferred from the structure of the span, without a parser for the framework">inferred</span>`;

// The period from the first start to the last end of the shown steps, in seconds after the turn's start.
function timeScale(shown, least = 0) {
  let first = 0, last = least ?? 0;
  for (const { start_s: start = 0, duration_s: duration } of shown) {
    if (start === null || start === Infinity) continue;
    first = Math.min(first, start);
    last = Math.max(last, start + (duration ?? 0));
  }
  return { first, all: last - first || 1 };
}
function TimeBar({ scale, start, duration }) {
  const known = start !== null && start !== undefined && start !== Infinity;
  const text = known && start > 0 ? `${seconds(duration)}, after ${seconds(start)}` : seconds(duration);
  return html`<span class="bar-of" role="img" aria-label=${text} title=${text}>${known && html`<span style=${{ marginLeft: `${(100 * (start - scale.first)) / scale.all}%`, width: `${(100 * (duration ?? 0)) / scale.all}%` }}></span>`}</span>`;
}

function Spans({ spans }) {
  const [open, set] = useState(false);
  const [chosen, choose] = useState(null), [text, find] = useState("");
  const has = (...values) => values.some((value) => textOf(value).toLowerCase().includes(text.trim().toLowerCase()));
  const rows = useMemo(() => (open ? inOrder(spans).filter(({ span }) => has(span.name, span.id, span.attributes)) : []), [open, spans, text]);
  const attributes = Object.entries(chosen?.attributes ?? {}), matching = attributes.filter((one) => has(...one));
  const scale = useMemo(() => timeScale(spans), [spans]);
  return html`<section><details onToggle=${(event) => set(event.currentTarget.open)}><summary><h2 class="inline">Spans</h2> <span class="dim">${count(spans.length)}, as received</span></summary>
    ${open && html`<p class="bar"><label>Find in names and attributes <input type="search" value=${text} onInput=${(event) => find(event.currentTarget.value)} /></label> <span role="status" class="dim">${text.trim() && `${count(rows.length)} of ${count(spans.length)}`}</span></p><div class="two spans"><${Rows} total=${rows.length} height=${28} role="list" label="Spans" row=${(i, place) => { const { span, depth } = rows[i]; return html`<div key=${span.id ?? i} role="listitem" class=${`row span ${chosen === span ? "chosen" : ""}`} style=${{ transform: `translateY(${place.top}px)` }}><button type="button" class="quiet" style=${{ paddingLeft: `${Math.min(depth, 20) * 14}px` }} onClick=${() => choose(span)}>${span.name}</button> <${TimeBar} scale=${scale} start=${span.start_s ?? 0} duration=${span.duration_s} /> <span class="n">${seconds(span.duration_s)}</span></div>`; }} />
      <div class="span-detail">${chosen ? html`<h3>${chosen.name} <code>${chosen.id}</code>${chosen.inferred && html` <${Inferred} />`}</h3><dl class="attributes">${(matching.length ? matching : attributes).map(([name, value]) => html`<div><dt><code>${name}</code></dt><dd><${Said} value=${Array.isArray(value) ? textOf(value) : value} /></dd></div>`)}</dl>${matching.length > 0 && matching.length < attributes.length && html`<p><button type="button" class="quiet" onClick=${() => find("")}>Show all ${count(attributes.length)} attributes</button></p>`}` : html`<p class="dim">Select a span to see its attributes.</p>`}</div></div>`}
  </details></section>`;
}
function inOrder(spans) {
  const below = new Map(), ids = new Set(spans.map((span) => span.id)), found = [], stack = [];
  for (const span of spans) { const key = ids.has(span.parent) && span.parent !== span.id ? span.parent : null; const all = below.get(key); if (all) all.push(span); else below.set(key, [span]); }
  const push = (key, depth) => { const all = below.get(key) ?? []; below.delete(key); for (let i = all.length - 1; i >= 0; i -= 1) stack.push({ span: all[i], depth }); };
  push(null, 0);
  while (stack.length) { const next = stack.pop(); found.push(next); push(next.span.id, next.depth + 1); }
  return found;
}
