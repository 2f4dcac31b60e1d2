"""Views: smaller classes of events that others define, held against the schemas those events are written with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from farandole.contracts.codec import Contract
from farandole.contracts.envelope_fields import ENVELOPE_FIELDS, Schema
from farandole.contracts.evolution.resolution import HARMLESS, Fault, faults
from farandole.errors import ConfigurationError

if TYPE_CHECKING:
    from farandole.contracts.lookup import Schemas


def check(contracts: Iterable[Contract], schemas: Schemas) -> None:
    """Hold the views among `contracts` against the latest schemas of their events, as far as those are known.

    Raises ConfigurationError naming the field that no record of the event could fill: every one would be a dead letter.
    """
    for contract in contracts:
        if contract.event.__event__.view and (known := schemas.latest(contract.writer.name)):
            misfit(contract, known.schema)


def misfit(view: Contract, written: Schema) -> None:
    """Raise ConfigurationError where `view` cannot read records that are written with the event's schema."""
    wrong = [fault for fault in faults(_payload(written), _payload(view.writer.schema)) if fault.kind not in HARMLESS]
    if wrong:
        raise ConfigurationError(
            f"{view.event.__name__} is a view of {view.writer.name}, and does not fit it: {_told(wrong[0], written)}"
        )


def _payload(schema: Schema) -> Schema:
    """Without the envelope, which is the runtime's."""
    return schema | {"fields": [field for field in schema["fields"] if field["name"] not in ENVELOPE_FIELDS]}


def _told(fault: Fault, written: Schema) -> str:
    if fault.kind == "missing" and not fault.written:
        fields = ", ".join(field["name"] for field in _payload(written)["fields"])
        return f"the event has no field {fault.path!r}; expected one of {fields}, or a default"
    return f"field {fault.path!r} is {fault.written or 'absent'} in the event, {fault.wanted or 'absent'} in the view"
