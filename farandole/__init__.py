"""LLM agents as an event-sourced choreography on Kafka, with a queryable job state in Postgres."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farandole.agent import Agent, load_agent
    from farandole.client import Client, Submission, WaitTimeout
    from farandole.context import OFFLINE_RULES, BlockingContext, Context
    from farandole.contracts.fields.unknown import Unknown
    from farandole.envelope import Envelope
    from farandole.errors import Fail, FarandoleError, Reject, Retry
    from farandole.event import Event, personal
    from farandole.outcome import DeadLettered, Emitted, Failed
    from farandole.reading import Job

#: Where each public name lives. Loaded when first asked for, so that `farandole --help` imports no vendor library.
_HOMES = {
    "Agent": "agent",
    "BlockingContext": "context",
    "Client": "client",
    "Context": "context",
    "DeadLettered": "outcome",
    "Emitted": "outcome",
    "Envelope": "envelope",
    "Event": "event",
    "Fail": "errors",
    "Failed": "outcome",
    "FarandoleError": "errors",
    "Job": "reading",
    "OFFLINE_RULES": "context",
    "Reject": "errors",
    "Retry": "errors",
    "Submission": "client",
    "Unknown": "contracts.fields.unknown",
    "WaitTimeout": "client",
    "load_agent": "agent",
    "personal": "event",
}

__all__ = [
    "OFFLINE_RULES",
    "Agent",
    "BlockingContext",
    "Client",
    "Context",
    "DeadLettered",
    "Emitted",
    "Envelope",
    "Event",
    "Fail",
    "Failed",
    "FarandoleError",
    "Job",
    "Reject",
    "Retry",
    "Submission",
    "Unknown",
    "WaitTimeout",
    "load_agent",
    "personal",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'farandole' has no attribute {name!r}")
    return getattr(import_module(f"farandole.{_HOMES[name]}"), name)
