// Driver of the Java client (org.apache.rocketmq:rocketmq-client:4.9.8).
// Reads one JSON command a line and prints one JSON event a line; see foreign.py for both.

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;

public class JavaClient {
    // The library may print to System.out; events go to the real one.
    private static final PrintStream EVENTS = System.out;
    private static DefaultMQProducer producer;
    private static DefaultMQPushConsumer consumer;

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JSONObject command = JSON.parseObject(line);
            try {
                obey(command);
            } catch (Exception error) {
                say("error", "text", String.valueOf(error));
            }
        }
    }

    private static void obey(JSONObject command) throws Exception {
        switch (command.getString("do")) {
            case "produce": produce(command); break;
            case "send": send(command); break;
            case "send_batch": sendBatch(command); break;
            case "consume": consume(command); break;
            case "query": query(command); break;
            case "view": view(command); break;
            case "mqadmin": mqadmin(command); break;
            case "stop": stop(); break;
            default: throw new IllegalArgumentException(command.toJSONString());
        }
    }

    private static void produce(JSONObject command) throws Exception {
        producer = new DefaultMQProducer(command.getString("group"));
        producer.setNamesrvAddr(command.getString("namesrv"));
        producer.start();
        say("ready");
    }

    private static void send(JSONObject command) {
        for (Message message : messages(command)) {
            try {
                if (message.getUserProperty("oneway") != null) {
                    producer.sendOneway(message);
                    say("sent", "id", "", "offset", -1, "status", "ONEWAY");
                } else {
                    sent(producer.send(message));
                }
            } catch (Exception error) {
                say("error", "text", String.valueOf(error));
            }
        }
    }

    private static void sendBatch(JSONObject command) throws Exception {
        sent(producer.send(messages(command)));
    }

    private static void consume(JSONObject command) throws Exception {
        boolean fails = command.getBooleanValue("fails");
        consumer = new DefaultMQPushConsumer(command.getString("group"));
        consumer.setNamesrvAddr(command.getString("namesrv"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(command.getString("topic"), command.getString("expression"));
        consumer.registerMessageListener((MessageListenerConcurrently) (received, context) -> {
            received.forEach(JavaClient::received);
            return fails
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        say("ready");
    }

    private static void query(JSONObject command) throws Exception {
        long now = System.currentTimeMillis();
        String topic = command.getString("topic");
        String key = command.getString("key");
        for (MessageExt found : producer.queryMessage(topic, key, 32, 0, now).getMessageList()) {
            received(found);
        }
        say("queried");
    }

    private static void view(JSONObject command) throws Exception {
        received(producer.viewMessage(command.getString("topic"), command.getString("id")));
    }

    // One virtual machine for many commands of the admin tool; whatever it prints is one event.
    private static void mqadmin(JSONObject command) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream out = System.out;
        PrintStream err = System.err;
        PrintStream capture = new PrintStream(printed, true, "UTF-8");
        System.setOut(capture);
        System.setErr(capture);
        try {
            MQAdminStartup.main0(command.getJSONArray("arguments").toArray(new String[0]), null);
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        say("printed", "text", printed.toString("UTF-8"));
    }

    private static void stop() {
        if (producer != null) {
            producer.shutdown();
        }
        if (consumer != null) {
            consumer.shutdown();
        }
        say("stopped");
        System.exit(0);
    }

    private static List<Message> messages(JSONObject command) {
        List<Message> messages = new ArrayList<>();
        for (Object item : command.getJSONArray("messages")) {
            JSONObject each = (JSONObject) item;
            byte[] body = each.getString("body").getBytes();
            Message message = new Message(command.getString("topic"), body);
            message.setTags(each.getString("tag"));
            if (each.containsKey("keys")) {
                message.setKeys(each.getString("keys"));
            }
            if (each.containsKey("delay")) {
                message.setDelayTimeLevel(each.getIntValue("delay"));
            }
            if (each.getBooleanValue("oneway")) {
                message.putUserProperty("oneway", "true");
            }
            messages.add(message);
        }
        return messages;
    }

    private static void sent(SendResult result) {
        say("sent", "id", result.getMsgId(), "offsetId", result.getOffsetMsgId(),
            "offset", result.getQueueOffset(), "queue", result.getMessageQueue().getQueueId(),
            "status", result.getSendStatus().name());
    }

    private static void received(MessageExt message) {
        String keys = message.getKeys();
        String tag = message.getTags();
        say("message", "topic", message.getTopic(), "id", message.getMsgId(),
            "keys", keys == null ? "" : keys, "tag", tag == null ? "" : tag,
            "body", new String(message.getBody()), "queue", message.getQueueId(),
            "offset", message.getQueueOffset(), "reconsume", message.getReconsumeTimes());
    }

    private static synchronized void say(String event, Object... pairs) {
        JSONObject line = new JSONObject();
        line.put("event", event);
        for (int i = 0; i < pairs.length; i += 2) {
            line.put((String) pairs[i], pairs[i + 1]);
        }
        EVENTS.println(line.toJSONString());
        EVENTS.flush();
    }
}
