// Charts: lines over time with intervals, and intervals as bars. They are SVG, so that they print, scale, and can be read aloud.
import { html, number, time, useState, go, count } from "./core.js";

const COLOURS = ["c0", "c1", "c2", "c3", "c4", "c5"];
export const colourOf = (place) => COLOURS[place % COLOURS.length];

// lines: [{name, points: [{at, mean, low?, high?, turns, scored}]}]. `to(point, line)` is the address of the turns behind a point.
export function Chart({ title, lines, since, until, step, unit = "1", marks = [], releases = [], width = 320, height = 96, to, zoom, axis = true }) {
  const [over, hover] = useState(null);
  const [drag, setDrag] = useState(null); // start and end of the drag, in units of the drawing
  const all = lines.flatMap((line) => line.points.filter((point) => point.mean !== null));
  if (!all.length) return html`<p class="dim chart-empty">No scores in this time range.</p>`;
  const shares = unit === "1" && all.every((point) => point.mean >= 0 && point.mean <= 1);
  const highest = Math.max(...all.map((point) => point.high ?? point.mean));
  const top = shares ? (highest > 0.5 ? 1 : Math.ceil(highest * 20 + 0.01) / 20) : Math.max(...all.map((point) => point.high ?? point.mean)) * 1.05 || 1;
  const least = Math.min(...all.map((point) => point.low ?? point.mean));
  const bottom = shares ? (least >= 0.5 && least < 1 ? Math.floor(least * 10 - 0.01) / 10 : 0) : Math.min(0, ...all.map((point) => point.low ?? point.mean));
  const left = axis ? 46 : 2;
  const begin = Math.min(since, ...all.map((point) => point.at)), end = Math.max(until, ...all.map((point) => point.at + step));
  const x = (at) => left + ((at + step / 2 - begin) / Math.max(end - begin, step)) * (width - left - 4);
  const drawn = releases.filter((one) => one.at >= begin && one.at <= end);
  const head = drawn.length ? 16 : 6; // labels of releases stand above the lines
  const y = (value) => head + (1 - (value - bottom) / (top - bottom || 1)) * (height - head - 16);
  const placeOf = (event) => { const box = event.currentTarget.getBoundingClientRect(); return Math.min(width - 4, Math.max(left, ((event.clientX - box.left) / box.width) * width)); };
  const timeAt = (place) => begin + ((place - left) / (width - left - 4)) * Math.max(end - begin, step);
  const grab = (event) => { if (zoom && event.button === 0) { const place = placeOf(event); setDrag([place, place]); } };
  const pull = (event) => { if (drag) setDrag([drag[0], placeOf(event)]); };
  const drop = () => { if (drag && Math.abs(drag[1] - drag[0]) > 8) { const [first, last] = drag.map(timeAt).sort((a, b) => a - b); zoom(Math.floor(first), Math.ceil(last)); } setDrag(null); };
  const path = (points) => points.map((point, i) => `${i ? "L" : "M"}${x(point.at).toFixed(1)} ${y(point.mean).toFixed(1)}`).join("");
  const band = (points) => `${points.map((p, i) => `${i ? "L" : "M"}${x(p.at).toFixed(1)} ${y(p.high).toFixed(1)}`).join("")}${[...points].reverse().map((p) => `L${x(p.at).toFixed(1)} ${y(p.low).toFixed(1)}`).join("")}Z`;
  const said = `${title}: ${lines.map((line) => { const last = line.points.filter((p) => p.mean !== null).at(-1); return last ? `${line.name ?? "all"} last ${number(last.mean, unit)}` : ""; }).filter(Boolean).join(", ")}`;
  return html`<figure class="chart">
    <svg viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${said} onMouseLeave=${() => { hover(null); setDrag(null); }} onMouseDown=${grab} onMouseMove=${pull} onMouseUp=${drop}>
      ${axis && [bottom, top].map((value) => html`<text class="tick" x=${left - 4} y=${y(value) + 3} text-anchor="end">${number(value, unit)}</text>`)}
      <line class="axis" x1=${left} x2=${width - 4} y1=${y(bottom)} y2=${y(bottom)} />
      ${axis && html`<text class="tick" x=${left} y=${height - 3}>${time(begin).slice(5, 16)}</text><text class="tick" x=${width - 4} y=${height - 3} text-anchor="end">${time(end).slice(5, 16)}</text>`}
      ${marks.filter((mark) => mark.at >= since && mark.at <= until).map((mark) => html`<line class=${`change ${mark.verdict}`} x1=${x(mark.at - step / 2)} x2=${x(mark.at - step / 2)} y1="4" y2=${y(bottom)}><title>${mark.verdict}: ${mark.metric} of ${mark.agent ?? "all"}, ${time(mark.at)}</title></line>`)}
      ${drawn.map((one, i) => { const at = x(one.at - step / 2), fits = at < width - 60; return html`<g class="release"><line x1=${at} x2=${at} y1="4" y2=${y(bottom)}><title>release ${one.version}, ${time(one.at)}</title></line>${(i === drawn.length - 1 || x(drawn[i + 1].at - step / 2) - at > 40) && html`<text class="tick" x=${at + (fits ? 3 : -3)} y="10" text-anchor=${fits ? "start" : "end"}>${one.version}</text>`}</g>`; })}
      ${drag && html`<rect class="zoom" x=${Math.min(...drag)} width=${Math.abs(drag[1] - drag[0])} y=${head} height=${y(bottom) - head} />`}
      ${lines.map((line, i) => {
        const points = line.points.filter((point) => point.mean !== null);
        const wide = points.filter((point) => point.low !== undefined && point.low !== null);
        return html`<g class=${colourOf(line.place ?? i)}>
          ${wide.length > 1 && html`<path class="band" d=${band(wide)} />`}
          <path class="line" d=${path(points)} />
          ${points.map((point) => html`<circle class="point" cx=${x(point.at)} cy=${y(point.mean)} r=${points.length < 2 ? 3 : over?.point === point ? 4 : width > 500 ? 2.2 : 1.3}
            onMouseEnter=${() => hover({ point, line })} onClick=${() => to && go(to(point, line))}><title>${`${line.name ?? ""} ${time(point.at)}: ${number(point.mean, unit)}, ${count(point.scored)} scored of ${count(point.turns)} turns`}</title></circle>`)}
        </g>`;
      })}
    </svg>
    <figcaption class="dim">${over ? `${over.line.name ?? ""} ${time(over.point.at).slice(5, 16)}: ${number(over.point.mean, unit)} (${count(over.point.scored)} scored)` : " "}</figcaption>
  </figure>`;
}

export function Interval({ mean, low, high, unit = "1", least = 0, most = 1 }) {
  if (mean === null || mean === undefined) return html`<span class="dim">–</span>`;
  const at = (value) => `${(100 * Math.min(1, Math.max(0, (value - least) / (most - least || 1)))).toFixed(1)}%`;
  return html`<svg class="interval" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${`${number(low, unit)} to ${number(high, unit)}`}>
    <line class="axis" x1="0" x2="100" y1="5" y2="5" /><line class="range" x1=${at(low)} x2=${at(high)} y1="5" y2="5" /><line class="middle" x1=${at(mean)} x2=${at(mean)} y1="1" y2="9" />
  </svg>`;
}
