// Driver of the Node client (npm `ali-ons` 3.12.0).
// Reads JSON commands and prints JSON events, one per line; foreign.py documents both.
'use strict';

const readline = require('readline');
const { Consumer, Message, Producer } = require('ali-ons');

const quiet = { info() {}, warn() {}, error: (...args) => console.error(...args), debug() {} };
let client = null;

function say(event, values) {
  process.stdout.write(JSON.stringify({ event, ...values }) + '\n');
}

// The client signs always; without an account with keys that no server knows.
function options({ namesrv, account, secret }, group) {
  return {
    nameSrv: namesrv,
    httpclient: { request() {} },
    accessKeyId: account || 'ak',
    accessKeySecret: secret || 'sk',
    logger: quiet,
    ...group,
  };
}

async function open(kind, settings) {
  client = new kind(settings);
  // The client emits errors for operations that it retries, such as the route of a missing retry topic.
  client.on('error', error => console.error(error));
  await client.ready();
}

async function produce(command) {
  await open(Producer, options(command, { producerGroup: command.group }));
  say('ready');
}

async function send({ topic, messages }) {
  for (const each of messages) {
    const message = new Message(topic, each.tag || '', each.body || '');
    if (each.keys) message.keys = [each.keys];
    if (each.delay) message.delayTimeLevel = each.delay;
    try {
      const result = await client.send(message);
      say('sent', {
        id: result.msgId,
        offset: result.queueOffset,
        queue: result.messageQueue.queueId,
        status: result.sendStatus,
      });
    } catch (error) {
      say('error', { text: String(error) });
    }
  }
}

async function consume(command) {
  const { group, topic, expression, fails, broadcasting } = command;
  await open(Consumer, options(command, { consumerGroup: group, isBroadcast: broadcasting }));
  client.subscribe(topic, expression, async message => {
    say('message', {
      topic: message.topic,
      id: message.msgId,
      keys: message.keys || '',
      tag: message.tags || '',
      body: message.body.toString(),
      queue: message.queueId,
      offset: Number(message.queueOffset),
      reconsume: message.reconsumeTimes,
    });
    if (fails) throw new Error('the consume command sets fails');
  });
  say('ready');
}

async function stop() {
  if (client) await client.close();
  say('stopped');
  process.exit(0);
}

const commands = { produce, send, consume, stop };
let turn = Promise.resolve();
readline.createInterface({ input: process.stdin }).on('line', line => {
  const command = JSON.parse(line);
  turn = turn
    .then(() => commands[command.do](command))
    .catch(error => say('error', { text: String(error && error.stack) }));
});
