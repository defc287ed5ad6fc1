"""Protobuf schemas with only the OTLP fields that otel-agenteval reads. Protobuf skips all other fields.

Fields that aren't needed immediately are declared as bytes, and :mod:`.pairs` parses attributes on first use. Protobuf rejects a
whole message if one of its texts isn't UTF-8. In this case, :func:`mended` repairs the message.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from ..core.wellformed import decoded

_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "bytes": _FIELD.TYPE_BYTES, "string": _FIELD.TYPE_STRING, "uint32": _FIELD.TYPE_UINT32, "int32": _FIELD.TYPE_INT32,
    "fixed32": _FIELD.TYPE_FIXED32, "fixed64": _FIELD.TYPE_FIXED64, "bool": _FIELD.TYPE_BOOL, "int64": _FIELD.TYPE_INT64,
    "double": _FIELD.TYPE_DOUBLE,
}  # fmt: skip
_SCHEMAS: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Request": (("groups", 1, "*ResourceGroup"),),
    "ResourceGroup": (("resource", 1, "bytes"), ("groups", 2, "*ScopeGroup")),
    "ScopeGroup": (("scope", 1, "bytes"), ("items", 2, "*bytes")),
    "Resource": (("attributes", 1, "*bytes"),),
    "Scope": (("name", 1, "bytes"),),
    "SpanHead": (("trace_id", 1, "bytes"), ("span_id", 2, "bytes"), ("parent_id", 4, "bytes"), ("flags", 16, "fixed32")),
    "Span": (
        ("trace_id", 1, "bytes"), ("state", 3, "bytes"), ("parent_id", 4, "bytes"), ("flags", 16, "fixed32"), ("name", 5, "bytes"), ("kind", 6, "int32"),
        ("start", 7, "fixed64"), ("end", 8, "fixed64"), ("attributes", 9, "*bytes"), ("dropped", 10, "uint32"), ("events", 11, "*Event"), ("status", 15, "Status"),
    ),
    "Event": (("time", 1, "fixed64"), ("name", 2, "bytes"), ("attributes", 3, "*bytes")),
    "Pair": (("key", 1, "string"), ("value", 2, "Value")),
    "Status": (("message", 2, "bytes"), ("code", 3, "int32")),
    "Value": (
        ("text", 1, "|string"), ("switch", 2, "|bool"), ("whole", 3, "|int64"), ("real", 4, "|double"), ("array", 5, "|bytes"),
        ("pairs", 6, "|bytes"), ("raw", 7, "|bytes"),
    ),
    "LogHead": (("trace_id", 9, "bytes"), ("span_id", 10, "bytes"), ("event_name", 12, "bytes"), ("attributes", 6, "map")),
}  # fmt: skip


def _messages() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="agenteval_split.proto", package="agenteval", syntax="proto3")
    for name, fields in _SCHEMAS.items():
        message = file.message_type.add(name=name)
        if name == "Value":
            message.oneof_decl.add(name="kind")
        for field, number, kind in fields:
            repeated = kind == "map" or kind.startswith("*")
            made = message.field.add(name=field, number=number, label=3 if repeated else 1)
            if kind.startswith("|"):
                made.oneof_index = 0
            of = kind.lstrip("*|")
            if of == "map":
                entry = message.nested_type.add(name=f"{field.capitalize()}Entry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, label=1, type=_FIELD.TYPE_STRING)
                entry.field.add(name="value", number=2, label=1, type=_FIELD.TYPE_MESSAGE, type_name=".agenteval.Value")
                made.type, made.type_name = _FIELD.TYPE_MESSAGE, f".agenteval.{name}.{entry.name}"
            elif of in _TYPES:
                made.type = cast("Any", _TYPES[of])
            else:
                made.type, made.type_name = _FIELD.TYPE_MESSAGE, f".agenteval.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"agenteval.{name}")) for name in _SCHEMAS}


MESSAGES = _messages()


# --- texts that aren't UTF-8

Kind = Literal["trace.v1.Span", "resource.v1.Resource", "logs.v1.LogRecord", "common.v1.AnyValue"]


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    """Return a descriptor pool with OTLP's messages in proto2 syntax, which accepts texts that aren't UTF-8."""
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, trace_pb2, logs_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        file.syntax = "proto2"
        pool.Add(file)
    return pool


def mended(raw: bytes, kind: Kind) -> bytes | None:
    """Replace invalid UTF-8 in a message with U+FFFD. Return None if the message has other errors."""
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
                value[:] = [decoded(text) if isinstance(text, bytes) else text for text in value]
            elif isinstance(value, bytes):
                setattr(message, field.name, decoded(value))
    return message
