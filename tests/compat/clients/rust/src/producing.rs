//! The producer of the Rust driver: every kind of send, and transactions.

use std::any::Any;
use std::sync::Arc;

use cheetah_string::CheetahString;
use rocketmq_client_rust::{
    ClientRuntime, DefaultMQProducer, LocalTransactionState, SendResult, TransactionListener,
    TransactionMQProducer,
};
use rocketmq_model::common::message::message_ext::MessageExt;
use rocketmq_model::common::message::message_single::Message as Made;
use rocketmq_model::common::message::MessageTrait;
use serde_json::{json, Value};

use crate::{fail, say, Command, Message};

#[derive(Default)]
pub struct Producing {
    plain: Option<DefaultMQProducer>,
    transactional: Option<TransactionMQProducer>,
}

/// The key of a message has two states: after sending, "-", and in a check-back.
struct KeyDecides;

fn state(keys: &str, at: usize) -> LocalTransactionState {
    match keys.split('-').nth(at) {
        Some("commit") => LocalTransactionState::CommitMessage,
        Some("rollback") => LocalTransactionState::RollbackMessage,
        _ => LocalTransactionState::Unknown,
    }
}

fn keys_of(message: &dyn MessageTrait) -> String {
    let name = CheetahString::from_static_str("KEYS");
    message.property(&name).map(|keys| keys.to_string()).unwrap_or_default()
}

impl TransactionListener for KeyDecides {
    fn execute_local_transaction(
        &self,
        message: &dyn MessageTrait,
        _argument: Option<&(dyn Any + Send + Sync)>,
    ) -> LocalTransactionState {
        state(&keys_of(message), 0)
    }

    fn check_local_transaction(&self, message: &MessageExt) -> LocalTransactionState {
        let keys = keys_of(message);
        say("checked", json!({"keys": keys}));
        state(&keys, 1)
    }
}

impl Producing {
    pub async fn start(&mut self, runtime: Arc<ClientRuntime>, command: Command) {
        let started = if command.transactions {
            let producer = TransactionMQProducer::builder(runtime)
                .producer_group(command.group)
                .name_server_addr(command.namesrv)
                .transaction_listener(KeyDecides)
                .build();
            self.transactional.insert(producer).start().await
        } else {
            let producer = DefaultMQProducer::builder(runtime)
                .producer_group(command.group)
                .name_server_addr(command.namesrv)
                .build();
            self.plain.insert(producer).start().await
        };
        match started {
            Ok(()) => say("ready", json!({})),
            Err(error) => fail(error),
        }
    }

    pub async fn send(&mut self, command: Command) {
        for each in &command.messages {
            if let Err(error) = self.send_one(&command.topic, each).await {
                fail(error);
            }
        }
    }

    async fn send_one(
        &mut self,
        topic: &str,
        each: &Message,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let made = made(topic, each);
        if each.transactional {
            let producer = self.transactional.as_mut().expect("a producer of transactions");
            let result = producer.send_message_in_transaction::<(), _>(made, None).await?;
            sent(result.send_result.as_ref());
            return Ok(());
        }
        let producer = self.plain.as_ref().expect("a producer");
        if each.oneway {
            producer.send_oneway(made).await?;
            say("sent", json!({"id": "", "offset": -1, "status": "ONEWAY"}));
        } else if each.is_async {
            let told = |result: Option<&SendResult>, error: Option<&_>| match error {
                Some(error) => fail(error),
                None => sent(result),
            };
            producer.send_with_callback(made, told).await?;
        } else if let Some(shard) = each.shard {
            let result = producer
                .send_with_selector(
                    made,
                    |queues, _, shard: &usize| queues.get(shard % queues.len()).cloned(),
                    shard,
                )
                .await?;
            sent(result.as_ref());
        } else {
            sent(producer.send(made).await?.as_ref());
        }
        Ok(())
    }

    pub async fn send_batch(&mut self, command: Command) {
        let producer = self.plain.as_ref().expect("a producer");
        let messages = command.messages.iter().map(|each| made(&command.topic, each)).collect();
        match producer.send_batch(messages).await {
            Ok(result) => sent(Some(&result)),
            Err(error) => fail(error),
        }
    }

    pub async fn stop(&mut self) {
        if let Some(mut producer) = self.plain.take() {
            producer.shutdown().await;
        }
        if let Some(mut producer) = self.transactional.take() {
            producer.shutdown().await;
        }
    }
}

fn made(topic: &str, each: &Message) -> Made {
    let mut message = Made::builder().topic(topic).body_slice(each.body.as_bytes());
    if !each.tag.is_empty() {
        message = message.tags(each.tag.as_str());
    }
    if !each.keys.is_empty() {
        message = message.key(each.keys.as_str());
    }
    if each.delay > 0 {
        message = message.delay_level(each.delay);
    }
    for (name, value) in &each.properties {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        message = message.raw_property(name.as_str(), text).expect("a property");
    }
    message.build_unchecked()
}

fn sent(result: Option<&SendResult>) {
    let Some(result) = result else {
        return fail("no result of a send");
    };
    say(
        "sent",
        json!({
            "id": result.msg_id.as_ref().map(|id| id.to_string()),
            "offsetId": result.offset_msg_id,
            "offset": result.queue_offset,
            "queue": result.message_queue.as_ref().map(|queue| queue.queue_id()),
            "status": result.send_status.to_string(),
        }),
    );
}
