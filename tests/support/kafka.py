"""A real Kafka broker: one node in KRaft mode."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.servers import Process, free_port, listens, program

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},PROXIED://127.0.0.1:{behind},CONTROLLER://127.0.0.1:{controller}{secure}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},PROXIED://127.0.0.1:{proxy}{secure}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
log.dirs={folder}/data
num.partitions={partitions}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=true
log.retention.hours=1
"""
_SECURE = """
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location={keystore}
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_{user}="{password}";
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
"""


class Kafka(Process):
    """A broker on a free port. Topics are created on first use.

    Args:
        folder: folder for its data and log.
        partitions: number of partitions of each topic.
        account: (user, password) for PLAIN or SCRAM-SHA-512 at its TLS address, ``secure``.
        certificate: files of the certificate and key of that address.

    At its port ``behind``, the broker advertises port ``proxy`` of 127.0.0.1, where a test can put a proxy.
    """

    def __init__(
        self,
        folder: Path,
        partitions: int = 3,
        behind: int | None = None,
        proxy: int | None = None,
        account: tuple[str, str] | None = None,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        port, controller = free_port(), free_port()
        self.secure = f"127.0.0.1:{free_port()}"
        behind = behind or free_port()
        self.address = f"127.0.0.1:{port}"
        folder.mkdir(parents=True, exist_ok=True)
        properties = folder / "server.properties"
        text = _PROPERTIES.format(
            port=port, controller=controller, folder=folder, partitions=partitions, behind=behind, proxy=proxy or behind,
            secure=f",SECURE://{self.secure}" if account is not None else "",
        )  # fmt: skip
        format_storage = [program("kafka-storage"), "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", properties]
        if account is not None and certificate is not None:
            keystore = folder / "broker.pem"
            keystore.write_bytes(b"".join(file.read_bytes() for file in reversed(certificate)))
            user, password = account
            text += _SECURE.format(keystore=keystore, user=user, password=password)
            format_storage += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]"]
        properties.write_text(text, encoding="utf-8")
        subprocess.run(format_storage, check=True, capture_output=True, timeout=60)
        super().__init__([program("kafka-server"), properties], log=folder / "kafka.log", ready=listens(port), cwd=folder)
