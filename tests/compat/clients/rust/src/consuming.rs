//! The push consumer of the Rust driver: concurrent or orderly, by tag or SQL92, clustering or
//! broadcasting; optionally the listener fails for every message.

use std::sync::Arc;

use rocketmq_client_rust::{
    ClientResult, ClientRuntime, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext, ConsumeOrderlyStatus, DefaultMQPushConsumer, MQPushConsumer,
    MessageListenerConcurrently, MessageListenerOrderly, MessageSelector,
};
use rocketmq_model::common::consumer::consume_from_where::ConsumeFromWhere;
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_protocol::protocol::heartbeat::message_model::MessageModel;
use serde_json::json;

use crate::{fail, say, Command};

struct Concurrently {
    fails: bool,
}

struct Orderly {
    fails: bool,
}

fn received(messages: &[&MessageExt]) {
    for message in messages {
        let text = |name: &str| {
            message.message_inner().property(name).map(str::to_string).unwrap_or_default()
        };
        let body = message.body().unwrap_or_default();
        say(
            "message",
            json!({
                "topic": message.topic().as_str(),
                // msg_id() has the offset id.
                "id": text("UNIQ_KEY"),
                "keys": text("KEYS"),
                "tag": text("TAGS"),
                "body": String::from_utf8_lossy(&body),
                "queue": message.queue_id(),
                "offset": message.queue_offset(),
                "reconsume": message.reconsume_times(),
            }),
        );
    }
}

impl MessageListenerConcurrently for Concurrently {
    fn consume_message(
        &self,
        messages: &[&MessageExt],
        _context: &ConsumeConcurrentlyContext,
    ) -> ClientResult<ConsumeConcurrentlyStatus> {
        received(messages);
        Ok(if self.fails {
            ConsumeConcurrentlyStatus::ReconsumeLater
        } else {
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
    }
}

impl MessageListenerOrderly for Orderly {
    fn consume_message(
        &self,
        messages: &[&MessageExt],
        context: &mut ConsumeOrderlyContext,
    ) -> ClientResult<ConsumeOrderlyStatus> {
        context.set_auto_commit(true);
        received(messages);
        Ok(if self.fails {
            ConsumeOrderlyStatus::SuspendCurrentQueueAMoment
        } else {
            ConsumeOrderlyStatus::Success
        })
    }
}

pub async fn start(runtime: Arc<ClientRuntime>, command: Command) -> Option<DefaultMQPushConsumer> {
    let model = if command.broadcasting {
        MessageModel::Broadcasting
    } else {
        MessageModel::Clustering
    };
    let mut consumer = DefaultMQPushConsumer::builder(runtime)
        .consumer_group(command.group)
        .name_server_addr(command.namesrv)
        .message_model(model)
        .build();
    consumer.set_consume_from_where(ConsumeFromWhere::ConsumeFromFirstOffset);
    let selector = if command.sql {
        MessageSelector::by_sql(command.expression)
    } else {
        MessageSelector::by_tag(command.expression)
    };
    if let Err(error) = consumer.subscribe_with_selector(&command.topic, Some(selector)).await {
        fail(error);
        return None;
    }
    if command.orderly {
        consumer.register_message_listener_orderly(Orderly { fails: command.fails });
    } else {
        consumer.register_message_listener_concurrently(Concurrently { fails: command.fails });
    }
    match consumer.start().await {
        Ok(()) => say("ready", json!({})),
        Err(error) => fail(error),
    }
    Some(consumer)
}
