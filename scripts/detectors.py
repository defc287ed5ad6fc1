"""Evaluate the default detectors on labeled turns: ``tests/data/detectors/{train,test}/*.jsonl``.

    python scripts/detectors.py [NAME ...]                          prints precision and recall on the test half
    python scripts/detectors.py --half train                        uses the half that the detectors were developed with
    python scripts/detectors.py --turns [--half test]               uses whole turns (``scripts/whole_turns.py``)
    python scripts/detectors.py --write [--costs]                   writes docs/reference/metrics/detectors.md, with new costs
    python scripts/detectors.py --failures [NAME ...] [--half test] lists the wrong results and their kinds
    python scripts/detectors.py --without LIST [NAME ...]           prints what both halves lose without a list of
                                                                    ``scripts/ablation.py`` (``*`` is a wildcard)

A case is one line of JSON: ``{"id", "lang", "flag", "kind", "turn"}``. ``flag`` is true if a careful reader sees the fault in the
turn. Detectors have the parameters of the default metrics. If a detector skips a case, no fault was found.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import otel_agenteval as oa
from otel_agenteval.core.score import Score
from otel_agenteval.metrics.bound_metric import BoundMetric, live_metric

sys.path.insert(0, str(Path(__file__).parent))
import whole_turns
from unwrap import unwrapped

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "data" / "detectors"
PAGE = ROOT / "docs" / "reference" / "metrics" / "detectors.md"
DETECTORS = (
    "pii_leakage", "secret_leak", "ungrounded_numbers", "ungrounded_urls", "injection_markers", "refusal", "system_prompt_leak",
)  # fmt: skip
HALVES = ("train", "test")
GROUPS: Mapping[str, frozenset[str]] = {
    "English": frozenset(("en",)),
    "Chinese, Japanese, and Korean": frozenset(("zh", "ja", "ko", "yue")),
    "Right-to-left scripts": frozenset(("ar", "he", "fa", "ur", "yi", "ckb")),
    "Cyrillic and Greek": frozenset(("ru", "uk", "bg", "sr", "mk", "be", "kk", "el")),
    "Scripts of South and Southeast Asia": frozenset(
        ("hi", "mr", "ne", "bn", "ta", "te", "kn", "ml", "gu", "pa", "si", "th", "lo", "km", "my")  # codespell:ignore te
    ),
}
OTHERS = "Other languages"
"""German, Spanish, Turkish, Vietnamese, and other languages in Latin script."""


class Case(NamedTuple):
    """A labeled turn."""

    id: str
    lang: str
    flag: bool
    """True if the turn has the fault."""
    kind: str
    """Reason why the case is difficult."""
    turn: Mapping[str, Any]


class Outcome(NamedTuple):
    case: Case
    fired: bool
    skipped: bool

    @property
    def wrong(self) -> bool:
        return self.fired is not self.case.flag


class Figures(NamedTuple):
    found: int
    missed: int
    false_alarms: int
    silent: int
    """Number of cases without a fault and without an alarm."""
    skipped: int

    @property
    def cases(self) -> int:
        return self.found + self.missed + self.false_alarms + self.silent

    @property
    def precision(self) -> float | None:
        """Share of the alarms that are correct."""
        return _share(self.found, self.found + self.false_alarms)

    @property
    def recall(self) -> float | None:
        """Share of the faulty cases that raised an alarm."""
        return _share(self.found, self.found + self.missed)

    @property
    def false_alarm_rate(self) -> float | None:
        """Share of the cases without a fault that raised an alarm."""
        return _share(self.false_alarms, self.false_alarms + self.silent)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def cases_of(name: str, half: str) -> list[Case]:
    """Return the cases of a detector, or [] if the detector has no file."""
    path = CASES / half / f"{name}.jsonl"
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")  # splitlines would also split at U+2028, which texts contain
    return [Case(**json.loads(line)) for line in lines if line.strip()]


def detector(name: str) -> BoundMetric:
    """Return the metric with the parameters of the default metrics."""
    return live_metric(f"code_{name}", {})


def fires(name: str, score: Score) -> bool:
    """Return True if a score reports the fault."""
    if name == "refusal":
        return score.value == 1.0
    return (score.value or 0.0) < 1.0 and score.status == "ok" if name == "ungrounded_numbers" else score.passed is False


def outcomes(name: str, half: str) -> list[Outcome]:
    """Evaluate a detector on its cases.

    Raises:
        RuntimeError: If the metric fails on a case.
    """
    metric = detector(name)
    found = []
    for case in cases_of(name, half):
        score = metric.evaluate(oa.Turn.from_dict(case.turn))
        if score.status not in ("ok", "skipped"):
            raise RuntimeError(f"{case.id}: {score.status} {score.error_type}")
        found.append(Outcome(case, fires(name, score), score.status == "skipped"))
    return found


def figures(of: Iterable[Outcome]) -> Figures:
    """Count the outcomes by label and result."""
    counts, skipped = Counter[tuple[bool, bool]](), 0
    for outcome in of:
        counts[outcome.case.flag, outcome.fired] += 1
        skipped += outcome.skipped
    return Figures(counts[True, True], counts[True, False], counts[False, True], counts[False, False], skipped)


def group_of(lang: str) -> str:
    """Return the group of a BCP-47 language code."""
    primary = lang.split("-", 1)[0].lower()
    return next((group for group, codes in GROUPS.items() if primary in codes), OTHERS)


# --- printed and written -----------------------------------------------------------------------------------------


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _row(first: str, of: Figures, *more: str) -> str:
    shares = (of.precision, of.recall, of.false_alarm_rate, _share(of.skipped, of.cases))
    return f"| {first} | {' | '.join((*more, str(of.cases), *map(_percent, shares)))} |"


def table(by_name: Mapping[str, Sequence[Outcome]]) -> list[str]:
    """Return a Markdown table with one row per detector."""
    lines = ["| Detector | Languages | Cases | Precision | Recall | False alarms | Skipped |", "|---|---|---|---|---|---|---|"]
    for name, of in by_name.items():
        lines.append(_row(f"`code_{name}`", figures(of), str(len({outcome.case.lang for outcome in of}))))
    return lines


def by_language(by_name: Mapping[str, Sequence[Outcome]]) -> list[str]:
    """Return a Markdown table with faults found and false alarms, by detector and group of languages."""
    groups = (*GROUPS, OTHERS)
    lines = ["| Detector | " + " | ".join(groups) + " |", "|---" * (len(groups) + 1) + "|"]
    for name, of in by_name.items():
        cells = []
        for group in groups:
            some = figures(outcome for outcome in of if group_of(outcome.case.lang) == group)
            found, alarms = some.found + some.missed, some.false_alarms + some.silent
            cells.append(f"{some.found}/{found}, {some.false_alarms}/{alarms}" if some.cases else "–")
        lines.append(f"| `code_{name}` | {' | '.join(cells)} |")
    return lines


_COST = re.compile(r"^\| `?(?:code_)?([a-z_]+|all)\b.* ([0-9.]+ ×) \|$", re.MULTILINE)


def written_costs() -> dict[str, str]:
    """Return the costs on the current page. Measured costs differ each time, so they are kept."""
    return dict(_COST.findall(PAGE.read_text(encoding="utf-8"))) if PAGE.exists() else {}


def turns_measured(half: str, failures: bool) -> list[str]:
    """Return the table for whole turns. With ``failures``, add the ids of wrong results."""
    result = whole_turns.evaluate(half)
    lines = whole_turns.table(result, {})
    for name, of in result.by_name.items() if failures else ():
        lines.append(f"{name}: missed {' '.join(of.missed_ids) or 'none'}; false alarms {' '.join(of.false_ids) or 'none'}")
    return lines


def page(measure_costs: bool = False) -> str:
    """Return the content of ``docs/reference/metrics/detectors.md``."""
    cost = {name: f"{ratio:.1f} ×" for name, ratio in whole_turns.costs().items()} if measure_costs else written_costs()
    whole = whole_turns.evaluate("test")
    tuned_on = sum(1 for _ in whole_turns.turns("train"))
    test = {name: outcomes(name, "test") for name in DETECTORS}
    lines = [
        "# Detectors",
        "",
        "Some metrics check every turn for problems, without a judge. This page shows how accurate they are on the labeled turns in",
        "`tests/data/detectors`. To regenerate it, run `python scripts/detectors.py --write`.",
        "",
        "## Whole turns",
        "",
        f"The test set has {whole.turns} agent turns in {whole.domains} domains and {whole.languages} languages. All have instructions, and most have tool results.",
        f"Of these turns, {whole.ordinary} are ordinary. Each of the other turns contains a problem, or only looks as if it did.",
        f"The authors of the turns didn't know how the detectors work. We tuned the detectors on {tuned_on} different turns.",
        "",
        *whole_turns.table(whole, cost),
        "",
        "- **Result**: A *verdict* is pass or fail, and failures can trigger alerts. A *signal* is a value with an explanation, but without a verdict.",
        "- **Problems**: Number of turns that contain the problem.",
        "- **Found**: Share of these turns in which the detector reports the problem.",
        "- **Innocent turns**: Number of turns labeled as innocent, including turns that only look as if they contained the problem.",
        "- **False alarms**: Share of innocent turns in which the detector reports the problem.",
        "- **(95 %)**: 95 % confidence interval.",
        "- **Cost**: CPU time of the detector, as a multiple of the time that `json.loads` takes for the same turn (about 4 kB).",
        "",
        "For `code_pii_leakage`, a problem is personal data that the agent didn't receive from the user, a tool, or another source. For `code_system_prompt_leak`, a problem is a",
        "word-for-word copy of the instructions. The results of `code_injection_markers` aren't fully independent, because we chose its limit for",
        "`warning` findings based on all labeled turns, including this test set. `code_ungrounded_numbers` isn't a default metric.",
        "",
        *whole_turns.cascade(whole),
        "",
        "## Severity",
        "",
        "Each finding in `detail.findings` has a severity. The attribute `agenteval.severity` of a score's events, and the counter",
        "`agenteval_findings_total`, use the highest severity of the score's findings. A failure without findings has the severity `warning`.",
        "",
        "| Severity | Meaning | Default alert |",
        "|---|---|---|",
        "| `critical` | The answer contains a private key, a connection string with a password, or a key or token in a published format. A finding is also critical if the agent followed an injected instruction. | `AgentEvalCriticalFinding` pages at the first finding. |",
        "| `warning` | The turn probably has a problem. The metric usually fails, unless it is a signal. | A single finding triggers no alert. If the metric has a [quality floor](../../operate/dashboards-and-alerts.md#change-a-quality-floor), failures count against the floor. |",
        "| `info` | The finding is usually a signal without a verdict, such as a refusal or an uncertain injection. | None. |",
        "",
        "To reduce alarms on your own traffic, see [Tune detectors](../../guides/tune-detectors.md).",
        "",
        "## Difficult cases",
        "",
        "The difficult cases are short turns. About half of these turns contain a problem, and the other turns only look as if they did. Many have non-Latin",
        "scripts, disguised or encoded text, or national formats. We developed the detectors with the set *train*. Authors who didn't know how the",
        "detectors work wrote the set *test*. All results in this section are from *test*. The results of `code_injection_markers`, `code_refusal`, and",
        "`code_ungrounded_numbers` aren't fully independent, because overall results on *test* influenced their settings.",
        "",
        "- **Precision**: Share of alarms that are correct.",
        "- **Recall**: Share of problems that the detector finds.",
        "- **False alarms**: Share of problem-free turns that raise an alarm.",
        "- **Skipped**: Share of turns that don't contain enough data for the detector. Problems in such turns count as missed.",
        "",
        *table(test),
        "",
        "The next table shows the results by language. For example, `23/24, 0/30` means that the detector found 23 of 24 problems, and that",
        "0 of 30 turns without a problem raised an alarm.",
        "",
        *by_language(test),
        "",
        "To list the detectors' wrong results on *train*, run `python scripts/detectors.py --failures`.",
    ]
    return unwrapped("\n".join(lines)) + "\n"


def failures(name: str, half: str) -> list[str]:
    """Return the wrong results of a detector without their texts, and the number of wrong results by kind."""
    of = outcomes(name, half)
    wrong = [outcome for outcome in of if outcome.wrong]
    cases = Counter((outcome.case.flag, outcome.case.kind) for outcome in of)
    kinds = Counter((outcome.case.flag, outcome.case.kind) for outcome in wrong)
    lines = [f"code_{name}, {half}: {len(wrong)} of {len(of)} wrong"]
    for (flag, kind), count in kinds.most_common():
        lines.append(f"  {'missed' if flag else 'false alarm'}  {kind}: {count} of {cases[flag, kind]}")
    for outcome in wrong:
        said = "missed" if outcome.case.flag else "false alarm"
        lines.append(
            f"  {outcome.case.id}  {outcome.case.lang}  {said}{' (skipped)' if outcome.skipped else ''}  {outcome.case.kind}"
        )
    return lines


# --- without a list ----------------------------------------------------------------------------------------------


class Change(NamedTuple):
    """A detector's results on one half, with and without a list."""

    list: str
    detector: str
    half: str
    before: Figures
    after: Figures | None
    """None if the detector fails without the list."""
    cases: int
    """Number of cases with another result."""

    @property
    def loses(self) -> bool:
        """Return True if precision or recall is lower without the list."""
        return self.after is None or any(
            (before or 0) - (after or 0) > LEAST_LOSS
            for before, after in ((self.before.precision, self.after.precision), (self.before.recall, self.after.recall))
        )


LEAST_LOSS = 0.001
"""Smaller losses of precision or recall are ignored."""


def without(pattern: str, names: Sequence[str], halves: Sequence[str], except_for: str = "") -> Iterator[Change]:
    """Yield the change of each detector without each list that matches ``pattern``, one list at a time.

    Lists that match the regular expression ``except_for`` are skipped.

    Raises:
        ValueError: If no list matches.
    """
    script = str(Path(__file__).with_name("ablation.py"))
    listed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.splitlines()
    users = {name: used_by.split() for name, _, used_by in (line.split("  ") for line in listed)}
    wanted = re.compile(".*".join(map(re.escape, pattern.split("*"))))
    chosen = [name for name in users if wanted.fullmatch(name) and not re.fullmatch(except_for, name)]
    if not chosen:
        raise ValueError(f"--without: no list matches {pattern!r}. To print all lists, run scripts/ablation.py")
    before = {(name, half): outcomes(name, half) for name in names for half in halves}
    using = {off: [name for name in names if name in users[off] or users[off] == ["all"]] for off in chosen}
    tasks = [(off, half, using[off]) for off in chosen for half in halves]

    def evaluated(part: int) -> list[Change]:
        mine = tasks[part :: os.cpu_count()]
        run = subprocess.run([sys.executable, script, "-"], input=json.dumps(mine), stdout=subprocess.PIPE, text=True, check=True)
        fired = map(json.loads, run.stdout.splitlines())
        return [
            _changed(off, name, half, before[name, half], found)
            for (off, half, names), found in zip(mine, fired, strict=True)
            for name in names
        ]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for changes in pool.map(evaluated, range(os.cpu_count() or 1)):
            yield from changes


def _changed(off: str, name: str, half: str, of: Sequence[Outcome], fired: Sequence[str] | None) -> Change:
    if fired is None:
        return Change(off, name, half, figures(of), None, len(of))
    after = [outcome._replace(fired=outcome.case.id in fired) for outcome in of]
    return Change(off, name, half, figures(of), figures(after), sum(map(Outcome.__ne__, of, after)))


def ablated(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the lines of a Markdown table, with one row for each list, detector and half."""
    yield "| Without | Detector | Half | Precision | Recall | Cases that change |"
    yield "|---|---|---|---|---|---|"
    for change in changes:
        if change.after is None:
            shares = ["fails", "fails"]
        else:
            before, after = change.before, change.after
            pairs = ((before.precision, after.precision), (before.recall, after.recall))
            shares = [f"{(old or 0):.1%} → {(new or 0):.1%}" for old, new in pairs]
        yield f"| `{change.list}` | `code_{change.detector}` | {change.half} | {' | '.join(shares)} | {change.cases} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="detectors, without code_; default all")
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--turns", action="store_true", help="print the figures on whole turns")
    parser.add_argument("--costs", action="store_true", help="with --write, measure the costs again")
    parser.add_argument("--write", action="store_true", help="write docs/reference/metrics/detectors.md")
    parser.add_argument("--failures", action="store_true", help="list wrong results (default half: train)")
    parser.add_argument("--without", metavar="LIST", help="print what is lost without each matching list; * is a wildcard")
    chosen = parser.parse_args(arguments)
    names = [name.removeprefix("code_") for name in chosen.names] or list(DETECTORS)
    unknown = [name for name in names if name not in DETECTORS]
    if unknown:
        parser.error(f"unknown detector {unknown[0]!r}. Detectors: {', '.join(DETECTORS)}")
    if chosen.write:
        PAGE.write_text(page(chosen.costs), encoding="utf-8")
    elif chosen.turns:
        print("\n".join(turns_measured(chosen.half or "test", chosen.failures)))
    elif chosen.without:
        try:
            for line in ablated(without(chosen.without, names, [chosen.half] if chosen.half else HALVES[::-1])):
                print(line, flush=True)
        except ValueError as error:
            parser.error(str(error))
    elif chosen.failures:
        for name in names:
            print("\n".join(failures(name, chosen.half or "train")))
    else:
        half = chosen.half or "test"
        by_name = {name: outcomes(name, half) for name in names}
        print("\n".join([f"Half {half}", "", *table(by_name), "", *by_language(by_name)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
