"""Tests of the Helm chart: every mode and option gives valid and consistent objects, and a command that starts."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.semconv import INSTRUMENTS, prometheus_name
from tests.support.certificates import Authority
from tests.support.process import ROOT
from tests.support.servers import Process, answers, free_port, program

CHART = ROOT / "deploy" / "helm" / "otel-agenteval"
KUBERNETES = "1.31"
BACKEND = "sidecar.collector.backend=tempo:4317"
DIGEST = "sha256:" + "0123456789abcdef" * 4
SETTINGS: dict[str, tuple[str, ...]] = {
    "gateway": (),
    "gateway that scales": (
        "gateway.autoscaling.enabled=true",
        "gateway.autoscaling.loadLevel.enabled=true",
        "gateway.journal.enabled=false",
        "tokenSecret=senders",
        "secretEnv=judge",
        "serviceMonitor.enabled=true",
        "serviceMonitor.labels.release=prometheus",
        "gateway.journal.storageClassName=fast",
        "priorityClassName=low",
        "imagePullSecrets[0].name=registry",
    ),
    "gateway with TLS": ("tls.secret=serving", f"image.digest={DIGEST}", "secretValues.JUDGE_API_KEY=hush"),
    "gateway with certificates of clients": (
        "tls.secret=serving",
        "tls.clientCa=true",
        "extraEnv[0].name=HTTPS_PROXY",
        "extraEnv[0].value=http://proxy:3128",
        "extraVolumes[0].name=scores",
        "extraVolumes[0].persistentVolumeClaim.claimName=scores",
        "extraVolumeMounts[0].name=scores",
        "extraVolumeMounts[0].mountPath=/scores",
        "workloadAnnotations.reloader\\.stakater\\.com/auto=yes",
    ),
    "sidecar": ("mode=sidecar", BACKEND),
    "sidecar with a ServiceMonitor": ("mode=sidecar", BACKEND, "serviceMonitor.enabled=true", "nodeSelector.pool=agents"),
    "bare": ("networkPolicy.enabled=false", "gateway.podDisruptionBudget.enabled=false"),
}
EVERY = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("helm"), *arguments], capture_output=True, text=True, timeout=600, check=False)


def _options(settings: tuple[str, ...]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


@cache
def rendered(*settings: str) -> dict[str, dict[str, Any]]:
    """Return the objects of a release called ``live``, by kind. They are shared, so don't change them."""
    done = helm("template", "live", CHART, "--kube-version", f"{KUBERNETES}.0", *_options(settings))
    assert done.returncode == 0, done.stderr
    found = [item for item in yaml.safe_load_all(done.stdout) if item]
    assert len({item["kind"] for item in found}) == len(found)
    return {item["kind"]: item for item in found}


def pods(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    workload = objects.get("StatefulSet") or objects["DaemonSet"]
    return workload["spec"]["template"]


def ours(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return next(container for container in pods(objects)["spec"]["containers"] if container["name"] == "agenteval")


@EVERY
def test_helm_and_kubernetes_take_every_object(settings: tuple[str, ...]) -> None:
    done = helm("lint", "--strict", CHART, "--kube-version", f"{KUBERNETES}.0", *_options(settings))
    assert done.returncode == 0, done.stdout + done.stderr
    for kind, item in rendered(*settings).items():
        if kind != "ServiceMonitor":  # the operator's own kind
            kubernetes_validate.validate(item, KUBERNETES, strict=True)


@EVERY
def test_everything_points_at_pods_and_ports_that_there_are(settings: tuple[str, ...]) -> None:
    objects = rendered(*settings)
    labels = pods(objects)["metadata"]["labels"]
    ports = {port["name"] for container in pods(objects)["spec"]["containers"] for port in container.get("ports", ())}
    selectors = [objects["Service"]["spec"]["selector"]]
    kinds = objects.keys() & {"StatefulSet", "DaemonSet", "PodDisruptionBudget"}
    selectors += [objects[kind]["spec"]["selector"]["matchLabels"] for kind in kinds]
    if "NetworkPolicy" in objects:
        selectors.append(objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"])
    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    assert {port["targetPort"] for port in objects["Service"]["spec"]["ports"]} <= ports
    if "NetworkPolicy" in objects:
        allowed = {port["port"] for rule in objects["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]}
        assert allowed == {port["targetPort"] for port in objects["Service"]["spec"]["ports"]}
        assert all(rule["from"] for rule in objects["NetworkPolicy"]["spec"]["ingress"])
    if "ServiceMonitor" in objects:
        monitor = objects["ServiceMonitor"]["spec"]
        assert monitor["selector"]["matchLabels"].items() <= objects["Service"]["metadata"]["labels"].items()
        served = {port["name"] for port in objects["Service"]["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in monitor["endpoints"]} <= served
        assert objects["Service"]["metadata"]["labels"][monitor["jobLabel"]] == "otel-agenteval"
    mounts = {mount["name"] for container in pods(objects)["spec"]["containers"] for mount in container["volumeMounts"]}
    claims = objects.get("StatefulSet", {"spec": {}})["spec"].get("volumeClaimTemplates", ())
    volumes = {volume["name"] for volume in pods(objects)["spec"]["volumes"]} | {claim["metadata"]["name"] for claim in claims}
    assert mounts == volumes


@EVERY
def test_containers_may_do_nothing_that_they_need_not(settings: tuple[str, ...]) -> None:
    pod = pods(rendered(*settings))["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        security = container["securityContext"]
        assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (True, False)
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
        assert "livenessProbe" in container
        assert "readinessProbe" in container


def test_the_grace_period_is_longer_than_the_drain() -> None:
    pod = pods(rendered())["spec"]
    config = load_config({}, env=_env(ours(rendered())))
    assert pod["terminationGracePeriodSeconds"] > config.serve.drain_timeout


def _env(container: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item.get("value", "a-secret") for item in container["env"]}


def test_it_scales_on_load_and_not_by_hand_at_the_same_time() -> None:
    objects = rendered(*SETTINGS["gateway that scales"])
    scaler, workload = objects["HorizontalPodAutoscaler"]["spec"], objects["StatefulSet"]
    assert scaler["scaleTargetRef"]["name"] == workload["metadata"]["name"]
    assert "replicas" not in workload["spec"]
    [metric] = [metric["pods"]["metric"]["name"] for metric in scaler["metrics"] if metric["type"] == "Pods"]
    assert metric in {prometheus_name(instrument) for instrument in INSTRUMENTS}
    assert "HorizontalPodAutoscaler" not in rendered()
    assert rendered()["StatefulSet"]["spec"]["replicas"] == 2


def test_a_journal_has_a_disk_that_outlives_its_pod() -> None:
    assert "--journal=/var/lib/otel-agenteval/journal" in ours(rendered())["args"]
    assert rendered()["StatefulSet"]["spec"]["volumeClaimTemplates"]
    without = rendered("gateway.journal.enabled=false")
    assert not [argument for argument in ours(without)["args"] if "journal" in argument]
    assert "volumeClaimTemplates" not in without["StatefulSet"]["spec"]


def test_an_image_can_be_named_by_what_is_in_it() -> None:
    assert ours(rendered(f"image.digest={DIGEST}", "image.tag=moved"))["image"] == f"otel-agenteval@{DIGEST}"
    assert ours(rendered("image.tag=1.2.3"))["image"] == "otel-agenteval:1.2.3"


def annotations(*settings: str) -> dict[str, str]:
    return dict(pods(rendered(*settings))["metadata"]["annotations"])


@pytest.mark.parametrize(
    "settings",
    [("config.inline.budget=7ms",), ("secretValues.KEY=b",), ("tls.secret=serving",), ("tokenSecret=senders",)],
    ids=str,
)
def test_pods_roll_when_the_configuration_or_a_secret_changes_and_only_then(settings: tuple[str, ...]) -> None:
    before = annotations("secretValues.KEY=c") if "secretValues" in settings[0] else annotations()
    assert annotations(*settings) != before
    assert annotations(*settings) == annotations(*settings, "serviceMonitor.enabled=true", "resources.limits.memory=2Gi")


def test_more_variables_and_volumes_come_as_they_are_given() -> None:
    objects = rendered(*SETTINGS["gateway with certificates of clients"])
    container = ours(objects)
    assert {"name": "HTTPS_PROXY", "value": "http://proxy:3128"} in container["env"]
    assert {"name": "scores", "mountPath": "/scores"} in container["volumeMounts"]
    assert {"name": "scores", "persistentVolumeClaim": {"claimName": "scores"}} in pods(objects)["spec"]["volumes"]
    assert objects["StatefulSet"]["metadata"]["annotations"] == {"reloader.stakater.com/auto": "yes"}


def test_secrets_of_the_chart_stand_in_a_secret_alone() -> None:
    objects = rendered(*SETTINGS["gateway with TLS"])
    assert objects["Secret"]["stringData"] == {"JUDGE_API_KEY": "hush"}
    assert [kind for kind, item in objects.items() if "hush" in str(item)] == ["Secret"]
    assert {"secretRef": {"name": objects["Secret"]["metadata"]["name"]}} in ours(objects)["envFrom"]


def started(objects: dict[str, dict[str, Any]], folder: Path, ready: str, tls: Path) -> tuple[Process, dict[str, int]]:
    """Run the container's command as a local process. Return the process and its ports by name.

    Args:
        ready: name of the port for readiness, and the path.
        tls: folder in place of the mounted certificates.
    """
    container = ours(objects)
    (folder / "etc").mkdir()
    (folder / "etc" / "config.yaml").write_text(objects["ConfigMap"]["data"]["config.yaml"], encoding="utf-8")
    ports = {port["containerPort"]: free_port() for port in container["ports"]} | {19465: free_port()}
    named = {port["name"]: ports[port["containerPort"]] for port in container["ports"]}
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    env = {name: value.replace(mounted.get("tls", "/no/tls"), str(tls)) for name, value in _env(container).items()}
    env |= {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder)}
    command = [sys.executable, "-m", "otel_agenteval", *(moved(argument, ports, folder) for argument in container["args"])]
    name, _, path = ready.partition("/")
    url = f"http://127.0.0.1:{named[name]}/{path}"
    return Process(command, log=folder / "log", ready=answers(url), env=env, cwd=folder), named


def test_the_sidecar_serves_with_the_certificate_of_the_secret(tmp_path: Path) -> None:
    objects = rendered(*SETTINGS["gateway with certificates of clients"])
    [volume] = [volume for volume in pods(objects)["spec"]["volumes"] if volume["name"] == "tls"]
    assert volume["secret"]["secretName"] == "serving"
    authority = Authority(tmp_path)
    server, client = authority.issue("server"), authority.issue("client")
    (tmp_path / "tls").mkdir()
    for file, source in (("tls.crt", server[0]), ("tls.key", server[1]), ("ca.crt", authority.file)):
        shutil.copy(source, tmp_path / "tls" / file)
    process, ports = started(objects, tmp_path, "metrics/readyz", tmp_path / "tls")
    with process:
        context = ssl.create_default_context(cafile=str(authority.file))
        context.load_cert_chain(*client)
        with urllib.request.urlopen(f"https://localhost:{ports['otlp-http']}/healthz", timeout=60, context=context) as answer:
            assert answer.status == 200


def test_beside_a_collector_only_that_one_may_send() -> None:
    objects = rendered(*SETTINGS["sidecar"])
    assert {"--grpc=127.0.0.1:14317", "--http=127.0.0.1:14318"} <= set(ours(objects)["args"])
    collector = next(c for c in pods(objects)["spec"]["containers"] if c["name"] == "collector")
    env = {item["name"]: item["value"] for item in collector["env"]}
    assert (env["AGENTEVAL_ENDPOINT"], env["BACKEND_ENDPOINT"]) == ("127.0.0.1:14317", "tempo:4317")
    assert objects["Service"]["spec"]["internalTrafficPolicy"] == "Local"
    config = objects["ConfigMap"]["data"]["collector.yaml"]
    assert all(f"${{env:{name}" in config for name in env)


def test_the_charts_collector_has_the_documented_configuration() -> None:
    configs = [ROOT / "collector_config" / "sidecar.yaml", CHART / "files" / "collector.yaml"]
    assert len({config.read_text(encoding="utf-8") for config in configs}) == 1


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (("mode=both",), "mode"),
        (("mode=sidecar",), "sidecar.collector.backend"),
        (("mode=sidecar", BACKEND, "tokenSecret=senders"), "tokenSecret"),
        (("replicaCount=3",), "replicaCount"),
        (("mode=sidecar", BACKEND, "tls.secret=serving"), "tls.secret"),
        (("image.digest=latest",), "/image/digest"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: tuple[str, ...], named: str) -> None:
    done = helm("template", "live", CHART, "--kube-version", f"{KUBERNETES}.0", *_options(settings))
    assert done.returncode != 0
    assert named in done.stderr


@pytest.mark.parametrize("settings", [(), SETTINGS["sidecar"]], ids=["gateway", "sidecar"])
def test_the_container_starts_as_the_chart_says_and_its_probes_answer(settings: tuple[str, ...], tmp_path: Path) -> None:
    objects = rendered(*settings)
    container = ours(objects)
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    process, ports = started(objects, tmp_path, f"{probes[-1]['port']}{probes[-1]['path']}", tmp_path)
    with process as sidecar:
        assert all(answers(f"http://127.0.0.1:{ports[probe['port']]}{probe['path']}")() for probe in probes)
        assert answers(f"http://127.0.0.1:{ports['metrics']}/metrics")()
        assert sidecar.stop() == 0
        assert (tmp_path / "state" / "journal").is_dir() == any("journal" in argument for argument in container["args"])


def moved(argument: str, ports: dict[int, int], folder: Path) -> str:
    """Replace the container's ports and folders in an argument with local ones."""
    for port, free in ports.items():
        argument = argument.replace(f":{port}", f":{free}")
    argument = argument.replace("0.0.0.0:", "127.0.0.1:")
    return argument.replace("/etc/otel-agenteval", str(folder / "etc")).replace("/var/lib/otel-agenteval", str(folder / "state"))
