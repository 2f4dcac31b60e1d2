"""Records to payloads, as one agent reads them: what is no event is poison, what it does not read is passed over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from farandole import records
from farandole.agent import Wiring
from farandole.contracts import views
from farandole.contracts.codec import Contract, Writer
from farandole.contracts.lookup import Schemas
from farandole.errors import Poison, Unreachable
from farandole.outage import Outage
from farandole.outcome import DeadLettered, Skipped
from farandole.settings import Settings
from farandole.worker import trail
from farandole.worker.holdings import Item


class Decoding:
    """Decodes a batch; looks unknown schemas up, off the event loop."""

    def __init__(self, settings: Settings, wiring: Wiring, schemas: Schemas, outage: Callable[[], Outage]) -> None:
        self._settings = settings
        self._wiring = wiring
        self._schemas = schemas
        self._outage = outage
        self._begun = False  #: the schema topic was read
        for contract in wiring.contracts:
            if not contract.event.__event__.view:  # nothing was ever written with that
                schemas.add(contract.writer)

    async def decode(self, items: list[Item]) -> None:
        """Set contract, fields and payload of each item, or the outcome of one that is not to be handled."""
        await self._learn(items)
        for item in items:
            try:
                self._decode(item)
            except Poison as poison:
                item.outcome = DeadLettered(poison.cause, str(poison))

    def _decode(self, item: Item) -> None:
        written = records.writer_of(item.record, self._schemas)
        contract = self._contract(written)
        if contract is None:
            if item.wake:  # it was put off by, or given back to, this very agent: nobody else will handle it
                known = ", ".join(self._wiring.reads)
                raise Poison("not_read", f"{written.name} came back to an agent that reads {known}")
            item.outcome = Skipped("not_read")
            return
        item.contract = contract
        item.fields = records.decode(item.record, written, self._settings, contract.writer).fields
        if item.wake:
            item.fields["run"] = item.wake.run
        item.outcome = trail.ended(item.record.headers, item.fields["hop"], self._settings.hop_limit, contract.event)
        if item.outcome:
            return
        item.payload = contract.read(item.fields)

    def _contract(self, written: Writer) -> Contract | None:
        """What reads the record: by its name, else by one it had before, where the renamed class runs already."""
        reads = self._wiring.reads
        return reads.get(written.name) or next((reads[name] for name in written.aliases if name in reads), None)

    async def _learn(self, items: list[Item]) -> None:
        """Make the schemas of the batch known before it is decoded. An outage of topic or registry is waited out.

        The first time, views are held against the schemas of their events. Raises ConfigurationError for one that cannot
        read them, which ends the worker: its records would all be dead letters.
        """
        unknown = self._schemas.unknown(records.schema_keys(item.record for item in items))
        outage = self._outage()
        while unknown or not self._begun:
            try:
                if not self._begun:
                    await asyncio.to_thread(self._schemas.read)
                    views.check(self._wiring.reads.values(), self._schemas)
                    self._begun = True
                await asyncio.to_thread(self._schemas.learn, unknown)
                return
            except Unreachable as failure:
                await asyncio.sleep(outage.endure(failure))
