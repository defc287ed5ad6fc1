// Findings of scores: excerpts below each score, and marks in the texts that they are about.
import { Places, html, textOf, useContext, useMemo, useState } from "./core.js";

const SEVERITIES = ["info", "warning", "critical"];
const CLASSES = { critical: "bad", warning: "warn" };
const at = (content, path) => path.match(/[a-z_]+|[0-9]+/g)?.reduce((value, name) => value?.[name], content);

// The API counts characters, and strings here count UTF-16 units.
function inUnits(text, points) {
  if (!/[\ud800-\udbff]/.test(text)) return (point) => point;
  const wanted = new Set(points), found = new Map();
  let point = 0, unit = 0;
  for (const character of text) {
    if (wanted.has(point)) found.set(point, unit);
    point += 1;
    unit += character.length;
  }
  return (one) => found.get(one) ?? unit;
}

// Path → its text, and the marks of all scores in it. `markOf` maps a finding to its mark.
function placesIn({ content, texts, scores }) {
  const byPath = new Map(), markOf = new Map();
  for (const score of scores) {
    for (const one of score.evidence) {
      const about = `${score.metric}: ${one.type}`, severity = SEVERITIES.includes(one.severity) ? one.severity : "warning";
      for (const [part, mark] of [[one, { severity, title: `${about} (${severity})` }], [one.compared, { severity: "compared", title: `compared with ${about}` }]]) {
        if (part?.found === undefined) continue;
        if (!byPath.has(part.path)) byPath.set(part.path, { text: texts[part.path] ?? textOf(at(content, part.path)), isText: texts[part.path] === undefined, marks: [] });
        Object.assign(mark, { start: part.start, end: part.end });
        byPath.get(part.path).marks.push(mark);
        markOf.set(part, mark);
      }
    }
  }
  for (const { text, marks } of byPath.values()) {
    const unit = inUnits(text, marks.flatMap((mark) => [mark.start, mark.end]));
    for (const mark of marks) Object.assign(mark, { from: unit(mark.start), to: unit(mark.end) });
  }
  return { byPath, markOf };
}

export function Findings({ all, children }) {
  const places = useMemo(() => placesIn(all), [all]);
  const [aim, show] = useState(null); // { mark }: the mark to scroll to
  const value = useMemo(() => ({ ...places, aim, show }), [places, aim]);
  return html`<${Places.Provider} value=${value}>${children}</${Places.Provider}>`;
}

export function Evidence({ score }) {
  if (!score.evidence.length) return null;
  const more = (score.detail?.count ?? 0) - score.evidence.length;
  return html`<ul class="evidence">${score.evidence.map((one) => html`<li>
      <${Excerpt} part=${one} severity=${one.severity}><span class=${`mark ${CLASSES[one.severity] ?? ""}`}>${one.severity}</span> ${one.type} <span class="dim">in ${one.place}${one.found === undefined && one.end > 0 ? `, characters ${one.start} to ${one.end}` : ""}</span></${Excerpt}>
      ${one.compared && html`<${Excerpt} part=${one.compared} severity="compared"><span class="dim">compared with ${one.compared.place}</span></${Excerpt}>`}</li>`)}
    ${more > 0 && html`<li class="dim">and ${more} more</li>`}</ul>`;
}

function Excerpt({ part, severity, children }) {
  const { markOf, show } = useContext(Places);
  const mark = markOf.get(part);
  const inside = html`${children}${part.found !== undefined && html` <span class="excerpt" dir="auto">${part.before}${part.found && html`<mark class=${severity}>${part.found}</mark>`}${part.after}</span>`}`;
  return mark ? html`<button type="button" class="finding" onClick=${() => show({ mark })}>${inside}</button>` : html`<div class="finding">${inside}</div>`;
}
