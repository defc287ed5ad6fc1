"""Repair of OTLP messages with texts that aren't UTF-8, which protobuf rejects as a whole. Invalid bytes become U+FFFD."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from ..core.wellformed import decoded

Kind = Literal["trace.v1.Span", "resource.v1.Resource", "logs.v1.LogRecord", "common.v1.AnyValue"]


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    """Return OTLP's messages in protobuf's older syntax, which doesn't validate texts."""
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, trace_pb2, logs_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        file.syntax = "proto2"
        pool.Add(file)
    return pool


def mended(raw: bytes, kind: Kind) -> bytes | None:
    """Return a message that protobuf accepts, or None if its texts aren't the problem."""
    read = message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"opentelemetry.proto.{kind}")).FromString
    try:
        found: bytes = _mend(read(raw)).SerializeToString()
    except (DecodeError, RecursionError):
        return None
    return found


def _mend(message: Any) -> Any:
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in value if field.is_repeated else (value,):
                _mend(inner)
        elif field.type == field.TYPE_STRING:
            if field.is_repeated:
                for at, text in enumerate(value):
                    value[at] = _text(text)
            else:
                setattr(message, field.name, _text(value))
    return message


def _text(text: str | bytes) -> str:
    return decoded(text) if isinstance(text, bytes) else text
