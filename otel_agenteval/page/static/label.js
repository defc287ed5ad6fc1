// Labeling of one turn after another, with the keyboard alone.
import { Link, Mark, Wait, filtersOf, go, html, isBad, link, number, post, useGet, useKeys, useState } from "./core.js";
import { Evidence } from "./evidence.js";

export function LabelForm({ turnId, scores, labels, done, chosen = "hand" }) {
  const [metric, setMetric] = useState("");
  const [comment, setComment] = useState("");
  const [value, setValue] = useState("");
  const [rating, setRating] = useState("");
  const [said, say] = useState("");
  const send = async (label) => {
    const number = (text) => (text === "" ? undefined : Number(text));
    try {
      await post("labels", { turn_id: turnId, label, chosen, ...(metric ? { metric } : {}), ...(comment ? { comment } : {}), value: number(value), rating: number(rating) });
      say(label === null ? "Label removed." : `Label stored: ${label}.`);
      done(label);
    } catch (error) { say(error.message); }
  };
  useKeys((event) => { if (event.key === "p") send("pass"); else if (event.key === "f") send("fail"); });
  return html`<form class="label-form" aria-label="Label" onSubmit=${(event) => event.preventDefault()}>
    <div class="bar"><button type="button" aria-keyshortcuts="p" onClick=${() => send("pass")}>Pass <kbd>p</kbd></button> <button type="button" aria-keyshortcuts="f" onClick=${() => send("fail")}>Fail <kbd>f</kbd></button>
      <label>about <select value=${metric} onChange=${(event) => setMetric(event.currentTarget.value)}><option value="">the whole turn</option>${scores.map((score) => html`<option value=${score.metric}>${score.metric}</option>`)}</select></label></div>
    <details><summary class="dim">Rating, corrected score, comment</summary><div class="bar">
      <label>Rating <input type="number" min="1" max="5" value=${rating} onInput=${(event) => setRating(event.currentTarget.value)} /></label>
      <label>Correct score <input type="number" step="any" value=${value} onInput=${(event) => setValue(event.currentTarget.value)} /></label>
      <label>Comment <input type="text" value=${comment} onInput=${(event) => setComment(event.currentTarget.value)} /></label></div></details>
    <p role="status" class="dim small">${said}</p>
    ${labels.length > 0 && html`<ul class="labels">${labels.map((label) => html`<li><span class=${`mark ${label.label === "pass" ? "good" : "bad"}`}>${label.label}</span> ${label.metric ?? "the whole turn"} <span class="dim">by ${label.by}${label.comment ? `: ${label.comment}` : ""}</span></li>`)}</ul>`}
  </form>`;
}

export function LabelNext({ address, facets }) {
  const { query } = address;
  const metric = query.get("metric") ?? "", choice = query.get("choice") === "doubtful" ? "doubtful" : "random", blind = choice === "random";
  const to = (changes) => go(link("/label", query, { choice: blind ? null : choice, ...changes }));
  const [turn, next] = useState(0);
  const asked = filtersOf(query, ["since", "until", "agent", "service", "version", "model", "metric"]);
  const path = facets?.labels ? `labels/next?choice=${choice}&${asked}` : null, found = useGet(path, turn);
  if (facets && !facets.labels) return html`<h1>Label</h1><p class="empty">Labeling is off. To turn it on, set <code>serve.page.labels</code> to a file, or run <code>otel-agenteval ui PATH --labels labels.jsonl</code>. Then <code>otel-agenteval calibrate labels.jsonl</code> compares the labels with each judge.</p>`;
  return html`<h1>Label</h1>
    <p class="bar"><label>About <select value=${metric} onChange=${(event) => to({ metric: event.currentTarget.value })}><option value="">any metric</option>${(facets?.metrics ?? []).map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select></label>
      <label>Turns <select value=${choice} onChange=${(event) => to({ choice: event.currentTarget.value === "doubtful" ? "doubtful" : null })}><option value="random">at random, without verdicts</option><option value="doubtful">close to the threshold</option></select></label></p>
    <p class="dim">${blind ? "Drawn from the latest 1,000 turns. Verdicts stay hidden, so that the labels measure the judge." : "These labels set thresholds. calibrate doesn't use them for rates, which they would bias."} Keys: <kbd>p</kbd> pass, <kbd>f</kbd> fail.</p>
    <${Wait} of=${found.path === path ? found : {}}>${(one) => (one.turn_id ? html`<p>${one.labelled} labeled. <${Link} to=${link(`/turn/${encodeURIComponent(one.turn_id)}`, query)}>Open the whole turn${blind ? ", with its verdicts" : ""}</${Link}></p><${Candidate} key=${one.turn_id} id=${one.turn_id} choice=${choice} done=${() => next(turn + 1)} />` : html`<p class="empty">${one.labelled} labeled, and no turn is left among the latest ones.</p>`)}</${Wait}>`;
}

function Candidate({ id, choice, done }) {
  const found = useGet(`turns/${encodeURIComponent(id)}`);
  return html`<${Wait} of=${found}>${(all) => html`<div class="two"><section><dl class="facts"><div><dt>asked</dt><dd dir="auto">${all.content?.input ?? "not shown"}</dd></div><div><dt>answered</dt><dd dir="auto">${all.content?.output ?? "not shown"}</dd></div></dl></section>
    <section><${LabelForm} turnId=${all.turn.turn_id} scores=${all.scores} labels=${all.labels} done=${done} chosen=${choice} />${choice !== "random" && html`<ul class="labels">${all.scores.filter((score) => isBad(score) || score.kind !== "code").map((score) => html`<li><code>${score.metric}</code> <${Mark} score=${score} /> ${score.type === "boolean" ? "" : number(score.value, score.unit)} ${score.explanation ?? ""}<${Evidence} score=${score} /></li>`)}</ul>`}</section></div>`}</${Wait}>`;
}
