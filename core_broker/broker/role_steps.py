"""Steps of every change of the role of a running broker."""

import asyncio
import logging
from dataclasses import replace
from typing import NamedTuple

import msgspec

from core_broker.broker.registration import Registration
from core_broker.config.broker import BrokerRole
from core_broker.errors import StoreReadOnly
from core_broker.processors.context import BrokerContext
from core_broker.processors.delay_delivery import DelayDelivery
from core_broker.processors.table import RequestTable
from core_broker.processors.transaction_checks import TransactionChecks

log = logging.getLogger(__name__)


class StepParts(NamedTuple):
    """The parts of a broker that work in one role only, or must know the role."""

    ctx: BrokerContext
    requests: RequestTable
    registration: Registration
    delays: DelayDelivery
    checks: TransactionChecks


class RoleSteps:
    """The parts of a broker as its role needs them."""

    def __init__(self, parts: StepParts) -> None:
        #: Number of role changes since the start.
        self.changes = 0
        self._parts = parts
        self._services: list[asyncio.Task[None]] = []
        self._is_registered = False

    def end_sends(self) -> None:
        """Write the messages of this event-loop iteration, which the present role accepted."""
        try:
            self._parts.requests.turn.end()
        except StoreReadOnly as error:
            log.warning("messages are dropped with the role: %s", error)

    def become(self, role: BrokerRole, broker_id: int) -> None:
        """Let settings and store have a role."""
        ctx = self._parts.ctx
        ctx.reconfigure(replace(ctx.config, broker_role=role, broker_id=broker_id))
        ctx.store.replica.set_active(role == "SLAVE")

    def start_services(self) -> None:
        """Start the services of a master."""
        loop = asyncio.get_running_loop()
        for work in (self._parts.delays.run(), self._parts.checks.run()):
            self._services.append(loop.create_task(work))

    async def end_services(self) -> None:
        """End the services of a master."""
        services, self._services = self._services, []
        for task in services:
            task.cancel()
        await asyncio.gather(*services, return_exceptions=True)

    def register(self, state_version: int) -> None:
        """Register the role at the name servers; a version of 0 says nothing about newer roles."""
        ctx, registration = self._parts.ctx, self._parts.registration
        self.changes += 1
        ctx.locks.clear()
        ctx.topics.touch(ctx.now_ms())
        # A name server ignores an older master that registers the id of a newer one.
        ctx.topics.version = msgspec.structs.replace(
            ctx.topics.version, state_version=state_version
        )
        if self._is_registered:
            registration.all_changed()
            return
        self._is_registered = True
        starting = asyncio.get_running_loop().create_task(registration.start(ctx.addr))
        ctx.tasks.add(starting)
        starting.add_done_callback(ctx.tasks.discard)
