// The producer of the Java driver: every kind of send, transactions, and requests (request-reply).

import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

final class Producing {
    private DefaultMQProducer producer;

    DefaultMQProducer client() {
        return producer;
    }

    void start(JSONObject command) throws Exception {
        String group = command.getString("group");
        boolean traces = command.getBooleanValue("trace");
        if (command.getBooleanValue("transactions")) {
            TransactionMQProducer transactions =
                new TransactionMQProducer(null, group, Signing.hook(command), traces, null);
            transactions.setTransactionListener(new KeyDecides());
            producer = transactions;
        } else {
            producer = new DefaultMQProducer(group, Signing.hook(command), traces, null);
        }
        producer.setNamesrvAddr(command.getString("namesrv"));
        producer.start();
        Events.say("ready");
    }

    void send(JSONObject command) {
        for (Object item : command.getJSONArray("messages")) {
            try {
                sendOne(command.getString("topic"), (JSONObject) item);
            } catch (Exception error) {
                Events.error(error);
            }
        }
    }

    private void sendOne(String topic, JSONObject each) throws Exception {
        Message message = message(topic, each);
        if (each.getBooleanValue("oneway")) {
            producer.sendOneway(message);
            Events.say("sent", "id", "", "offset", -1, "status", "ONEWAY");
        } else if (each.getBooleanValue("async")) {
            producer.send(message, new Told());
        } else if (each.getBooleanValue("transactional")) {
            Events.sent(producer.sendMessageInTransaction(message, null));
        } else if (each.containsKey("shard")) {
            Events.sent(producer.send(message,
                (queues, sent, shard) -> queues.get((Integer) shard % queues.size()),
                each.getInteger("shard")));
        } else {
            Events.sent(producer.send(message));
        }
    }

    void sendBatch(JSONObject command) throws Exception {
        List<Message> messages = new ArrayList<>();
        for (Object item : command.getJSONArray("messages")) {
            messages.add(message(command.getString("topic"), (JSONObject) item));
        }
        Events.sent(producer.send(messages));
    }

    void request(JSONObject command) throws Exception {
        Message question = new Message(
            command.getString("topic"), command.getString("body").getBytes());
        Message answer = ask(question);
        Events.say("replied", "body", new String(answer.getBody()));
    }

    /** Retries once: the consumer has three seconds to send a reply, too short on a busy machine. */
    private Message ask(Message question) throws Exception {
        try {
            return producer.request(question, 10_000);
        } catch (RequestTimeoutException late) {
            return producer.request(question, 10_000);
        }
    }

    void stop() {
        if (producer != null) {
            producer.shutdown();
        }
    }

    private static Message message(String topic, JSONObject each) {
        Message message = new Message(topic, each.getString("body").getBytes());
        message.setTags(each.getString("tag"));
        if (each.containsKey("keys")) {
            message.setKeys(each.getString("keys"));
        }
        if (each.containsKey("delay")) {
            message.setDelayTimeLevel(each.getIntValue("delay"));
        }
        if (each.containsKey("properties")) {
            for (Map.Entry<String, Object> one : each.getJSONObject("properties").entrySet()) {
                message.putUserProperty(one.getKey(), String.valueOf(one.getValue()));
            }
        }
        return message;
    }

    private static final class Told implements SendCallback {
        @Override
        public void onSuccess(SendResult result) {
            Events.sent(result);
        }

        @Override
        public void onException(Throwable error) {
            Events.error(error);
        }
    }

    // The key of a message has two states: after sending, "-", and in a check-back.
    private static final class KeyDecides implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return state(message.getKeys().split("-")[0]);
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            Events.say("checked", "keys", message.getKeys());
            return state(message.getKeys().split("-")[1]);
        }

        private static LocalTransactionState state(String word) {
            switch (word) {
                case "commit": return LocalTransactionState.COMMIT_MESSAGE;
                case "rollback": return LocalTransactionState.ROLLBACK_MESSAGE;
                default: return LocalTransactionState.UNKNOW;
            }
        }
    }
}
