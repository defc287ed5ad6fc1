"""The world around an agent that is to be recorded: its model, its tools, its user and its OTLP endpoint, in one server.

    python tests/recording/stage.py --port 8471 --out FOLDER

A runner in any language plays scenarios against it (all bodies JSON, 127.0.0.1 only):

* ``POST /control/start {"set": "mastra-native", "scenario": "s2"}`` answers
  ``{"turns": [{"user_input": …}], "conversation_id": … or null, "documents": […], "sub_agent": …, "stream": bool, "tools": [names],
  "steps": […], "all_steps": [[…]]}`` (what the model says, call by call, in the first turn and in each);
* for each turn ``POST /control/turn {"index": 0}``, then the agent's run; ``POST /control/answer {"answer": "…"}`` or
  ``{"error": {"type": "…", "message": "…"}}``, then the exporters are flushed;
* ``POST /control/finish {"note": …, "framework_tools": [names that are no tools of the application], "no_agents": true where
  nothing says that a function is an agent, "tool_prefix": "what the framework puts before a tool's name"}`` writes ``truth.json``.

A tool's body is one request, ``POST /tools/NAME`` with its arguments: 200 and ``{"result": …}``, or 500 and ``{"error_type", "message"}``,
which the tool raises as its language does. So the ledger of tool calls is the same for every language. Models are at the usual paths
(Chat Completions, Responses, embeddings, Messages, Gemini; fake_llm.py), spans and logs at any path that ends in ``/traces`` or ``/logs``,
as protobuf or JSON. ``GET /control/scenarios`` lists the scenarios.

The truth comes from the script, the model's log and the tools' ledger, never from spans. What a recording holds at all is checked
by ``tests/support/check_turns.py``. Needs opentelemetry-proto.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import re
import threading
import zlib
from pathlib import Path

import fake_llm
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SIGNALS = {"traces": (ExportTraceServiceRequest, ".jsonl"), "logs": (ExportLogsServiceRequest, ".logs.jsonl")}
NEUTRAL = {
    "host.name": {"stringValue": "host-1"}, "host.id": {"stringValue": "0" * 32}, "process.pid": {"intValue": "1"},
    "process.owner": {"stringValue": "app"}, "process.executable.path": {"stringValue": "/app/run"}, "host.ip": {"arrayValue": {}},
    "process.command": {"stringValue": "app"}, "process.command_line": {"stringValue": "app"}, "process.command_args": {"arrayValue": {}},
}  # fmt: skip
PATHS = re.compile(r"(?:file://)?/(?:tmp|root|work|home|usr|opt)/[A-Za-z0-9_./@-]*")

CITIES = ("Porto", "Tallinn", "Córdoba", "Nagoya", "Windhoek", "Hobart", "Tromsø", "Kraków", "Valparaíso", "Da Nang", "Zürich", "Accra")
SHOPS = ("Linden Garden Tools", "Corvid Camera House", "Tern & Thistle Teas", "Marlow Bicycles", "Juniper Records", "Ostrava Optics")
NAMES = ("Ines", "Pavel", "Aiko", "Zanele", "Mateo", "Søren", "Noor", "Bich")
COLOURS = ("teal", "saffron", "plum", "olive", "crimson", "slate")
SKIES = ("light rain", "clear skies", "morning fog", "strong wind")


class Theme:
    """What a set of recordings talks about, fixed by its name, so that sets differ and a set repeats."""

    def __init__(self, name: str) -> None:
        digest = hashlib.sha256(name.encode()).digest()
        self.city, self.other = CITIES[digest[0] % 12], CITIES[(digest[0] + 5) % 12]
        self.shop, self.person = SHOPS[digest[1] % 6], NAMES[digest[2] % 8]
        self.colour, self.sky = COLOURS[digest[3] % 6], SKIES[digest[4] % 4]
        self.degrees, self.days = 3 + digest[5] % 28, 14 + digest[6] % 40
        self.order = f"{chr(65 + digest[7] % 26)}{chr(65 + digest[8] % 26)}-{1000 + digest[9] * 31}"
        self.job, self.amount = f"job-{digest[10] * 37 + 1000}", 20 + digest[11] % 300
        self.documents = [
            {"id": "returns", "score": 0.91, "content": f"{self.shop} takes returns within {self.days} days of delivery, unused and in the original packaging."},
            {"id": "refunds", "score": 0.64, "content": f"Refunds from {self.shop} go back to the original payment method within 5 business days."},
        ]  # fmt: skip

    def tool(self, name: str, arguments: dict, earlier: int):
        """What a tool returns; raises ToolError."""
        if name == "get_weather":
            return f"{self.degrees} °C and {self.sky}"
        if name == "convert_currency":
            return {"amount": round(float(arguments.get("amount") or 0) * 1.25, 2), "currency": arguments.get("currency", "EUR")}
        if name == "lookup_order":
            if earlier == 0:
                raise ToolError("OrderServiceError", f"order service timed out for {arguments.get('order_id')} (HTTP 504)")
            return f"{arguments.get('order_id')}: shipped, arrives Tuesday"
        if name == "check_job":
            return f"{arguments.get('job_id')} is still running"
        if name == "search_docs":
            return "\n\n".join(document["content"] for document in self.documents)
        raise ToolError("UnknownTool", name)


class ToolError(Exception):
    """A tool that fails, by type and message."""


def scenarios(theme: Theme, conversation: str) -> dict[str, dict]:
    """Each scenario: its turns (what the user says, and what the model answers, call by call) and what the runner has to know."""
    t = theme
    weather = {"name": "get_weather", "arguments": {"city": t.city}}
    order = {"name": "lookup_order", "arguments": {"order_id": t.order}}
    answer = f"It is {t.degrees} °C with {t.sky} in {t.city}."
    ask = {"user_input": f"What is the weather in {t.city}?", "steps": [{"tool_calls": [weather]}, {"text": answer}]}
    job = {"name": "check_job", "arguments": {"job_id": t.job}}
    return {
        "s1": {"turns": [{"user_input": f"In one sentence, what is {t.city} known for?", "steps": [{"text": f"{t.city} is known for its harbour and its hills."}]}]},
        "s2": {"turns": [ask]},
        "s3": {"turns": [{"user_input": f"Weather in {t.other}, and {t.amount} US dollars in euros, please.", "steps": [
            {"tool_calls": [{"name": "get_weather", "arguments": {"city": t.other}}, {"name": "convert_currency", "arguments": {"amount": t.amount, "currency": "EUR"}}]},
            {"text": f"{t.other} has {t.degrees} °C, and {t.amount} dollars are {t.amount * 1.25:.2f} euros."}]}]},
        "s4": {"turns": [{"user_input": f"Where is my order {t.order}?", "steps": [{"tool_calls": [order]}, {"tool_calls": [order]}, {"text": f"Order {t.order} has been shipped and arrives on Tuesday."}]}]},
        "s5": {"documents": True, "turns": [{"user_input": f"How long do I have to return something to {t.shop}?", "steps": [{"text": f"You have {t.days} days from delivery, for unused goods in their packaging."}]}]},
        "s6": {"session": True, "turns": [
            {"user_input": f"Hi, I'm {t.person} and my favourite colour is {t.colour}.", "steps": [{"text": f"Nice to meet you, {t.person}! I will remember {t.colour}."}]},
            ask,
            {"user_input": "And which colour did I say I like?", "steps": [{"text": f"You said that you like {t.colour}."}]}]},
        "s7": {"sub_agent": "travel_specialist", "turns": [{"user_input": f"Ask the travel specialist what one should pack for {t.city}.", "steps": [
            {"tool_calls": [{"name": "travel_specialist", "arguments": {"task": f"What should one pack for {t.city}?"}}]},
            {"tool_calls": [weather]},
            {"text": f"Pack a warm jacket: {t.degrees} °C and {t.sky}."},
            {"text": f"The specialist says: for {t.city} take a warm jacket."}]}]},
        "s8": {"turns": [{"user_input": f"Is {t.job} done yet? Keep checking.", "steps": [*({"tool_calls": [job]} for _ in range(5)), {"text": f"{t.job} is still running after five checks."}]}]},
        "s9": {"error": True, "turns": [{"user_input": f"Write a haiku about {t.city}.", "steps": [{"error": 429, "message": "Rate limit reached for requests"}]}]},
        "s9b": {"error": True, "turns": [{"user_input": f"Is it cold in {t.city}?", "steps": [{"tool_calls": [weather]}, {"error": 500, "message": "The server had an error while processing your request"}]}]},
        "s10": {"stream": True, "turns": [{"user_input": f"Tell me about the return policy of {t.shop}.", "steps": [{"text": f"{t.shop} takes returns within {t.days} days, unused and in the original packaging."}]}]},
        "s10b": {"stream": True, "turns": [ask]},
        "s11": {"session": False, "turns": [
            {"user_input": f"Write a limerick about {t.other}.", "steps": [{"error": 429, "message": "Rate limit reached for requests"}]},
            ask]},
    }  # fmt: skip


class Recording:
    """The scenario that is being played."""

    def __init__(self, folder: Path, name: str, scenario: str) -> None:
        self.folder, self.set, self.scenario = folder / name, name, scenario
        self.theme = Theme(name)
        self.conversation = f"conv-{hashlib.sha256(f'{name}/{scenario}'.encode()).hexdigest()[:12]}"
        plan = scenarios(self.theme, self.conversation)
        self.plan = plan[scenario]
        self.turns: list[dict] = []
        self.tool_log: list[dict] = []
        self.folder.mkdir(parents=True, exist_ok=True)
        for _, suffix in SIGNALS.values():
            (self.folder / f"{scenario}{suffix}").unlink(missing_ok=True)

    def told(self) -> dict:
        """What the runner has to know."""
        plan = self.plan
        names = {call["name"] for turn in plan["turns"] for step in turn["steps"] for call in step.get("tool_calls", ())}
        return {
            "turns": [{"user_input": turn["user_input"]} for turn in plan["turns"]], "stream": plan.get("stream", False),
            "conversation_id": self.conversation if plan.get("session") else None, "sub_agent": plan.get("sub_agent"),
            "documents": self.theme.documents if plan.get("documents") else [], "tools": sorted(names - {plan.get("sub_agent")}),
            "steps": plan["turns"][0]["steps"], "all_steps": [turn["steps"] for turn in plan["turns"]],
        }  # fmt: skip

    def begin(self, index: int) -> None:
        self.turn = self.plan["turns"][index]
        self.tool_log = []
        salt = f"{self.set}/{self.scenario}/{index}"
        fake_llm.S.update(steps=json.loads(json.dumps(self.turn["steps"])), i=0, log=[], salt=salt)

    def call_tool(self, name: str, arguments: dict) -> tuple[int, dict]:
        earlier = sum(entry["name"] == name for turn in self.turns for entry in turn["tool_calls"])
        earlier += sum(entry["name"] == name for entry in self.tool_log)
        entry = {"name": name, "arguments": arguments, "result": None, "ok": True}
        self.tool_log.append(entry)
        try:
            entry["result"] = self.theme.tool(name, arguments, earlier)
        except ToolError as error:
            entry.update(ok=False, error_type=error.args[0], error_message=error.args[1])
            return 500, {"error_type": error.args[0], "message": error.args[1]}
        return 200, {"result": entry["result"]}

    def end(self, said: dict) -> None:
        error = said.get("error")
        calls = [entry for entry in fake_llm.S["log"] if entry.get("api") != "embeddings"]
        self.turns.append({
            "user_input": self.turn["user_input"], "final_answer": None if error else said.get("answer"), "error": bool(error),
            "error_type": (error or {}).get("type"), "error_message": (error or {}).get("message"), "llm_calls": calls,
            "tool_calls": self.tool_log, "sub_agents": [self.plan["sub_agent"]] if self.plan.get("sub_agent") else [],
            "pseudo_tool_calls": [self.plan["sub_agent"]] if self.plan.get("sub_agent") else [],
            "retrievals": self.theme.documents if self.plan.get("documents") else [], "observable": {},
        })  # fmt: skip

    def finish(self, said: dict) -> dict:
        path = self.folder / "truth.json"
        truth = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"set": self.set, "scenarios": {}}
        logs = f"{self.scenario}.logs.jsonl"
        for turn in self.turns:
            if said.get("framework_tools"):
                turn["framework_terminal_tool"] = said["framework_tools"]
            if said.get("no_agents"):
                turn["sub_agents"] = []
            for entry in turn["tool_calls"]:
                entry["name"] = said.get("tool_prefix", "") + entry["name"]
        truth["scenarios"][self.scenario] = {
            "file": f"{self.scenario}.jsonl", "logs_file": logs if (self.folder / logs).exists() else None, "note": said.get("note"),
            "conversation_id": self.conversation if self.plan.get("session") and not said.get("no_session") else None,
            "n_turns": len(self.turns), "turns": self.turns,
        }  # fmt: skip
        if said.get("versions"):
            truth["versions"] = said["versions"]
        path.write_text(json.dumps(truth, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        expected = [turn["user_input"] for turn in self.plan["turns"]]
        asked = [len(turn["llm_calls"]) for turn in self.turns]
        return {"turns": len(self.turns), "expected_turns": len(expected), "llm_calls": asked, "tool_calls": [len(turn["tool_calls"]) for turn in self.turns]}

    def keep(self, signal: str, request: dict) -> None:
        for key in ("resourceSpans", "resourceLogs"):
            for resource in request.get(key, ()):
                for attribute in resource.get("resource", {}).get("attributes", ()):
                    if attribute["key"] in NEUTRAL:
                        attribute["value"] = NEUTRAL[attribute["key"]]
        with (self.folder / f"{self.scenario}{SIGNALS[signal][1]}").open("a", encoding="utf-8") as file:
            file.write(json.dumps(neutral(request), ensure_ascii=False, separators=(",", ":")) + "\n")


def neutral(value):
    """Without the paths of the machine that recorded."""
    if isinstance(value, dict):
        return {key: neutral(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [neutral(inner) for inner in value]
    return PATHS.sub("/app/file", shorter(value)) if isinstance(value, str) else value


def shorter(value, longest: int = 1500):
    """Without the middle of long texts in JSON, such as a product's own instructions."""
    if isinstance(value, dict):
        return {key: shorter(inner, longest) for key, inner in value.items()}
    if isinstance(value, list):
        return [shorter(inner, longest) for inner in value]
    if not isinstance(value, str) or len(value) <= longest:
        return value
    if value[:1] not in ("{", "["):
        return f"{value[:200]}… {value[-100:]}"
    try:
        return json.dumps(shorter(json.loads(value), 400), ensure_ascii=False, separators=(",", ":"))
    except ValueError:
        return value


def as_json(signal: str, raw: bytes, kind: str) -> dict:
    """An OTLP request as the Collector's file exporter writes it: ids in hex, enums as numbers."""
    if "json" in kind:
        return json.loads(raw)
    message = SIGNALS[signal][0]()
    message.ParseFromString(raw)
    return hex_ids(MessageToDict(message, use_integers_for_enums=True))


def hex_ids(value):
    if isinstance(value, dict):
        return {
            key: base64.b64decode(inner).hex() if key in ("traceId", "spanId", "parentSpanId") else hex_ids(inner)
            for key, inner in value.items()
        }
    return [hex_ids(inner) for inner in value] if isinstance(value, list) else value


class Stage(fake_llm.H):
    """Everything behind one port; models are fake_llm's."""

    out: Path
    recording: Recording | None = None
    lock = threading.RLock()

    def do_GET(self) -> None:
        if self.path.startswith("/control/scenarios"):
            self._json({"scenarios": list(scenarios(Theme("x"), "x"))})
        else:
            super().do_GET()

    def do_POST(self) -> None:
        path = self.path.split("?")[0].rstrip("/")
        if path.endswith(("/traces", "/logs", "/metrics")) and not path.startswith("/control"):
            self._export(path.rsplit("/", 1)[1])
        elif path.startswith(("/control/", "/tools/")):
            with self.lock:
                self._control(path, json.loads(self._body() or b"{}"))
        else:
            super().do_POST()

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        coding = self.headers.get("content-encoding", "")
        return gzip.decompress(raw) if coding == "gzip" else zlib.decompress(raw) if coding == "deflate" else raw

    def _export(self, signal: str) -> None:
        raw = self._body()
        with self.lock:
            if Stage.recording is not None and signal in SIGNALS:
                Stage.recording.keep(signal, as_json(signal, raw, self.headers.get("content-type", "")))
        self.send_response(200)
        self.send_header("content-type", self.headers.get("content-type", "application/x-protobuf"))
        body = b"{}" if "json" in self.headers.get("content-type", "") else b""
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _control(self, path: str, body: dict) -> None:
        name = path.rsplit("/", 1)[1]
        recording = Stage.recording
        if name == "start":
            Stage.recording = Recording(self.out, body["set"], body["scenario"])
            return self._json(Stage.recording.told())
        if recording is None:
            return self._json({"message": "nothing is being recorded: POST /control/start first"}, 409)
        if path.startswith("/tools/"):
            code, answer = recording.call_tool(name, body)
            return self._json(answer, code)
        if name == "turn":
            recording.begin(int(body.get("index", 0)))
            return self._json({})
        if name == "answer":
            recording.end(body)
            return self._json({})
        if name == "finish":
            answer = recording.finish(body)
            Stage.recording = None
            return self._json(answer)
        return self._json({"message": f"unknown: {path}"}, 404)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8471)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    Stage.out = given.out
    fake_llm.Srv(("127.0.0.1", given.port), Stage).serve_forever()
