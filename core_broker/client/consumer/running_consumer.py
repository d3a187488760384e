"""A started push consumer: the listener on top of the common group member."""

import logging
from collections.abc import Mapping

from core_broker.client.consumer.delivery import Delivery
from core_broker.client.consumer.group_member import GroupMember, Member
from core_broker.client.consumer.listening import AnyListener
from core_broker.client.consumer.orderly_delivery import OrderlyDelivery
from core_broker.client.consumer.puller import PullContext
from core_broker.client.consumer.queue_locks import QueueLocks
from core_broker.client.consumer.send_back import SendBack
from core_broker.client.consumer.settings import ConsumerSettings
from core_broker.client.hooks import HookChain
from core_broker.client.producer_settings import ProducerSettings
from core_broker.client.sender import Sender
from core_broker.errors import GantryError, RequestRefused
from core_broker.message.topics import CLIENT_INNER_PRODUCER_GROUP
from core_broker.remoting.bodies import (
    EXPRESSION_TAG,
    CheckClientRequestBody,
    ConsumeType,
    MessageModel,
    MessageQueue,
    SubscriptionData,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode

log = logging.getLogger(__name__)

RECONSUME_TIMES_DEFAULT = 16


class RunningConsumer(GroupMember):
    """The running part of a PushConsumer, from start to stop."""

    def __init__(
        self,
        member: Member,
        settings: ConsumerSettings,
        subscriptions: Mapping[str, SubscriptionData],
        listener: AnyListener,
        *,
        is_orderly: bool,
    ) -> None:
        super().__init__(member, settings, subscriptions, ConsumeType.CONSUME_PASSIVELY)
        self._consumer_settings = settings
        self._is_orderly = is_orderly
        self.suspended = False
        if is_orderly and settings.model is MessageModel.CLUSTERING:
            self._locks = QueueLocks(self.instance, self.group)
        self._delivery = self._orderly(listener) if is_orderly else self._concurrent(listener)
        context = PullContext(
            self.instance,
            self.group,
            settings,
            subscriptions,
            self.offsets,
            self._delivery,
            stats=self._stats.__getitem__,
            announce=self.instance.wake_heartbeats,
            correct_offset=self._correct_offset,
            advance_offset=self.offsets.update,
            is_paused=lambda _: self.suspended,
            namespace=self.namespace,
        )
        self._assemble(context, call=self._delivery.call, is_orderly=is_orderly)

    async def check_filters(self) -> None:
        """Check the SQL92 expressions at a broker (46). Raises RequestRefused for a refused
        expression; without a reachable broker the check is skipped."""
        try:
            for subscription in self._subscriptions.values():
                if subscription.expression_type != EXPRESSION_TAG:
                    await self._check_filter(subscription)
        except RequestRefused:
            await self.instance.stop()
            raise

    async def _check_filter(self, subscription: SubscriptionData) -> None:
        body = CheckClientRequestBody(
            client_id=self.instance.client_id, group=self.group, subscription_data=subscription
        )
        try:
            route = await self.instance.routes.route(subscription.topic)
            addr = self.instance.routes.addr(route.data.queue_datas[0].broker_name)
        except (GantryError, IndexError) as error:
            log.info("No broker can check the filter of %s: %s", subscription.topic, error)
            return
        try:
            await self.instance.ask(addr, RequestCode.CHECK_CLIENT_CONFIG, body=encode_body(body))
        except RequestRefused as refused:
            if refused.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
        except GantryError as error:
            log.info("The filter of %s was not checked: %s", subscription.topic, error)

    async def start(self) -> None:
        self._delivery.start()
        await super().start()

    async def _drain(self) -> None:
        await self._delivery.stop()

    def _concurrent(self, listener: AnyListener) -> Delivery:
        return Delivery(
            self.group,
            listener,
            self._consumer_settings,
            offsets=self.offsets,
            send_back=self._send_back().send_back,
            hooks=self._hooks,
            stats=self._stats.__getitem__,
        )

    def _orderly(self, listener: AnyListener) -> OrderlyDelivery:
        return OrderlyDelivery(
            self.group,
            listener,
            self._consumer_settings,
            offsets=self.offsets,
            to_dead_letters=self._send_back().to_dead_letters,
            hooks=self._hooks,
            stats=self._stats.__getitem__,
            holds=self._may_consume,
        )

    def _may_consume(self, queue: MessageQueue) -> bool:
        return self._locks is None or self._locks.holds(queue)

    def _send_back(self) -> SendBack:
        sender = Sender(
            self.instance, CLIENT_INNER_PRODUCER_GROUP, ProducerSettings(), HookChain(())
        )
        times = self._consumer_settings.max_reconsume_times
        times = RECONSUME_TIMES_DEFAULT if times < 0 else times
        return SendBack(self.instance, sender, self.group, times, self.namespace)

    def _own_properties(self) -> dict[str, str]:
        settings = self._consumer_settings
        return {
            "PROP_CONSUMEORDERLY": str(self._is_orderly).lower(),
            "PROP_THREADPOOL_CORE_SIZE": str(settings.concurrency),
            "consumeMessageBatchMaxSize": str(settings.batch_max),
            "maxReconsumeTimes": str(settings.max_reconsume_times),
        }
