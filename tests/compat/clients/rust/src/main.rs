//! Driver of the Rust client (crate rocketmq-client-rust).
//! Reads JSON commands and prints JSON events, one per line; foreign.py documents both.

#![recursion_limit = "512"]

mod consuming;
mod producing;

use std::collections::HashMap;
use std::sync::Arc;

use rocketmq_client_rust::{ClientRuntime, ClientRuntimeConfig};
use rocketmq_observability::TelemetryRuntimeGuard;
use rocketmq_runtime::RuntimeOwner;
use serde::Deserialize;
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, BufReader};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    pub body: String,
    pub tag: String,
    pub keys: String,
    pub delay: i32,
    pub shard: Option<usize>,
    pub oneway: bool,
    #[serde(rename = "async")]
    pub is_async: bool,
    pub transactional: bool,
    pub properties: HashMap<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Command {
    #[serde(rename = "do")]
    pub name: String,
    pub namesrv: String,
    pub group: String,
    pub topic: String,
    pub expression: String,
    pub fails: bool,
    pub sql: bool,
    pub orderly: bool,
    pub broadcasting: bool,
    pub transactions: bool,
    pub messages: Vec<Message>,
}

/// Prints one event; println! locks the output, so lines of several threads do not mix.
pub fn say(event: &str, mut values: Value) {
    values["event"] = json!(event);
    println!("{values}");
}

pub fn fail(error: impl std::fmt::Display) {
    say("error", json!({"text": error.to_string()}));
}

async fn drive(runtime: Arc<ClientRuntime>) {
    let mut producer = producing::Producing::default();
    let mut consumer = None;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let command: Command = serde_json::from_str(&line).expect("a command of foreign.py");
        match command.name.as_str() {
            "produce" => producer.start(runtime.clone(), command).await,
            "send" => producer.send(command).await,
            "send_batch" => producer.send_batch(command).await,
            "consume" => consumer = consuming::start(runtime.clone(), command).await,
            "stop" => break,
            other => panic!("{other}"),
        }
    }
    producer.stop().await;
    if let Some(mut running) = consumer {
        running.shutdown().await;
    }
    runtime.shutdown().await;
    say("stopped", json!({}));
}

fn main() {
    let owner = RuntimeOwner::new().expect("a runtime");
    let telemetry = TelemetryRuntimeGuard::noop();
    let runtime = ClientRuntime::try_new(
        owner.root_context().component("driver"),
        ClientRuntimeConfig::default(),
        telemetry.handle(),
    )
    .expect("a client runtime");
    owner.block_on(drive(runtime));
    // The thread that reads the standard input may still wait for a line.
    std::process::exit(0);
}
