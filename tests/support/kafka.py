"""A real Kafka broker: one node, in KRaft mode."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.servers import Process, free_port, listens, program

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},PROXIED://127.0.0.1:{behind},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},PROXIED://127.0.0.1:{proxy}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT
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


class Kafka(Process):
    """A broker on a free port; topics are made when they are first used.

    Args:
        folder: for its data and log.
        partitions: of each topic.

    Its port ``behind`` tells clients to come to the port ``proxy`` of 127.0.0.1, which a test may put a proxy on.
    """

    def __init__(self, folder: Path, partitions: int = 3, behind: int | None = None, proxy: int | None = None) -> None:
        port, controller = free_port(), free_port()
        behind = behind or free_port()
        self.address = f"127.0.0.1:{port}"
        folder.mkdir(parents=True, exist_ok=True)
        properties = folder / "server.properties"
        properties.write_text(
            _PROPERTIES.format(
                port=port, controller=controller, folder=folder, partitions=partitions, behind=behind, proxy=proxy or behind
            ),
            encoding="utf-8",
        )
        format_storage = [program("kafka-storage"), "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", properties]
        subprocess.run(format_storage, check=True, capture_output=True, timeout=60)
        super().__init__([program("kafka-server"), properties], log=folder / "kafka.log", ready=listens(port), cwd=folder)
