// Facts that are more frequent in turns that failed a metric than in turns that passed.
import { Interval } from "./charts.js";
import { Link, Wait, count, html, link, percent, points, sumsOf, useGet } from "./core.js";
import { Filters } from "./filters.js";
import { MostFailures } from "./fleet.js";

const FILTER_OF = { agent: "agent", service: "service", "service.version": "version", model: "model", tool: "tool" };

export function Differences({ address, facets }) {
  const { query } = address;
  const metric = query.get("metric");
  const found = useGet(metric ? `differences?${sumsOf(query)}` : null);
  const all = useGet(metric ? null : `estimates?${sumsOf(query)}`);
  return html`<h1>Differences</h1><${Filters} address=${address} facets=${facets} lists=${false} />
    ${metric ? html`<${Wait} of=${found}>${(one) => html`<${Found} found=${one} query=${sumsOf(query)} />`}</${Wait}>` : html`<p class="empty">Select a metric.</p><${Wait} of=${all}>${(one) => html`<${MostFailures} found=${one} query=${query} />`}</${Wait}>`}`;
}

const written = (fact) => (">≤".includes(fact.value[0]) ? `${fact.attribute} ${fact.value}` : `${fact.attribute} = ${fact.value}`);
const both = (facts) => facts.reduce((all, fact) => { const [[name, value]] = Object.entries(filterOf(fact)); return { ...all, [name]: name in all ? [all[name], value].flat() : value }; }, {});
const filterOf = (fact) => (FILTER_OF[fact.attribute] ? { [FILTER_OF[fact.attribute]]: fact.value } : { fact: written(fact) });

function Found({ found, query }) {
  const failing = (fact) => link("/turns", query, { metric: found.metric, outcome: "fail", ...(fact ? filterOf(fact) : {}) });
  const of = count(found.failed + found.passed);
  return html`<p class="bar"><${Link} to=${failing()}>${count(found.failed)} of ${of} turns failed <code>${found.metric}</code></${Link}> <span class="dim">If many turns passed, a random sample of them is compared.</span>
      ${found.failed > 0 && html`<${Link} to=${link("/failure-modes", query)}>Failure modes of these turns</${Link}>`}</p>
    ${found.findings.length > 0 && html`<p class="dim">These facts are more frequent among the failed turns. A difference isn't proof of a cause.</p>`}
    ${found.findings.length === 0 ? html`<p class="empty">${found.tested ? `No difference shown. ${count(found.tested)} facts and pairs of facts were compared.` : "Too few turns failed or passed to compare them."}</p>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Facts of failed turns"><table>
      <thead><tr><th scope="col">fact</th><th scope="col" class="n">of failed</th><th scope="col" class="n">of passed</th><th scope="col" class="n">difference</th><th scope="col">interval</th><th scope="col" class="n">p</th><th scope="col" class="n">failed turns</th><th scope="col" class="n">passed turns</th></tr></thead>
      <tbody>${found.findings.map((one) => html`<tr><td class="fact">${one.facts.map((fact, i) => html`${i > 0 && html`<span class="dim"> and </span>`}<${Link} to=${failing(fact)}><bdi>${written(fact)}</bdi></${Link}>`)}
          ${one.few && html` <span class="mark warn" title="fewer than 30 failed turns have it">few turns</span>`}
          ${one.effect && html` <span class="mark" title="the failure itself can have caused it">can be an effect</span>`}
          ${one.also.length > 0 && html`<div class="dim small">same turns: ${one.also.map((fact, i) => html`${i > 0 && ", "}<bdi>${written(fact)}</bdi>`)}</div>`}</td>
        <td class="n">${percent(one.failed, 1)}</td><td class="n">${percent(one.passed, 1)}</td><td class="n">${points(one.failed - one.passed)}</td>
        <td><${Interval} mean=${100 * (one.failed - one.passed)} low=${100 * one.interval[0]} high=${100 * one.interval[1]} most=${100} unit="pp" /><span class="dim small">${points(one.interval[0])} … ${points(one.interval[1])}</span></td>
        <td class="n">${one.p_adjusted < 0.001 ? "< 0.001" : one.p_adjusted.toFixed(3)}</td><td class="n"><${Link} to=${link("/turns", query, { metric: found.metric, outcome: "fail", ...both(one.facts) })}>${count(one.turns[0])}</${Link}></td><td class="n">${count(one.turns[1])}</td></tr>`)}</tbody></table></div>`}`;
}
