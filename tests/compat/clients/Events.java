// Events of the Java driver: one JSON object per line, on the original standard output.

import com.alibaba.fastjson.JSONObject;
import java.io.PrintStream;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;

final class Events {
    private static PrintStream events;

    private Events() {
    }

    static void open() {
        events = System.out;
        System.setOut(System.err);
    }

    static void sent(SendResult result) {
        say("sent", "id", result.getMsgId(), "offsetId", result.getOffsetMsgId(),
            "offset", result.getQueueOffset(), "queue", result.getMessageQueue().getQueueId(),
            "status", result.getSendStatus().name());
    }

    static void message(MessageExt message) {
        String keys = message.getKeys();
        String tag = message.getTags();
        say("message", "topic", message.getTopic(), "id", message.getMsgId(),
            "keys", keys == null ? "" : keys, "tag", tag == null ? "" : tag,
            "body", new String(message.getBody()), "queue", message.getQueueId(),
            "offset", message.getQueueOffset(), "reconsume", message.getReconsumeTimes());
    }

    /** The text of an error is the text of the exception and of its causes. */
    static void error(Throwable error) {
        StringBuilder text = new StringBuilder();
        for (Throwable each = error; each != null; each = each.getCause()) {
            text.append(each).append('\n');
        }
        say("error", "text", text.toString());
    }

    static synchronized void say(String event, Object... pairs) {
        JSONObject line = new JSONObject();
        line.put("event", event);
        for (int i = 0; i < pairs.length; i += 2) {
            line.put((String) pairs[i], pairs[i + 1]);
        }
        events.println(line.toJSONString());
        events.flush();
    }
}
