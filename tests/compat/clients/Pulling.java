// The pull consumers of the Java driver: queue by queue (DefaultMQPullConsumer), and by polling
// (DefaultLitePullConsumer).

import com.alibaba.fastjson.JSONObject;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

final class Pulling {
    private static final int COUNT_MAX = 32;
    private static final long POLL_MILLIS = 1000;

    private DefaultMQPullConsumer pulling;
    private DefaultLitePullConsumer polling;

    @SuppressWarnings("deprecation")
    void pull(JSONObject command) throws Exception {
        String group = command.getString("group");
        pulling = new DefaultMQPullConsumer(group, Signing.hook(command));
        pulling.setNamesrvAddr(command.getString("namesrv"));
        pulling.start();
        for (MessageQueue queue
            : pulling.fetchSubscribeMessageQueues(command.getString("topic"))) {
            long end = pulling.maxOffset(queue);
            for (long offset = pulling.minOffset(queue); offset < end;) {
                PullResult result = pulling.pull(queue, "*", offset, COUNT_MAX);
                if (result.getMsgFoundList() != null) {
                    result.getMsgFoundList().forEach(Events::message);
                }
                offset = result.getNextBeginOffset();
            }
            pulling.updateConsumeOffset(queue, end);
            pulling.getDefaultMQPullConsumerImpl().getOffsetStore()
                .updateConsumeOffsetToBroker(queue, end, false);
        }
        Events.say("pulled");
    }

    void poll(JSONObject command) throws Exception {
        String group = command.getString("group");
        polling = new DefaultLitePullConsumer(group, Signing.hook(command));
        polling.setNamesrvAddr(command.getString("namesrv"));
        polling.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        polling.setAutoCommit(false);
        polling.subscribe(command.getString("topic"), "*");
        polling.start();
        for (int left = command.getIntValue("count"); left > 0;) {
            List<MessageExt> received = polling.poll(POLL_MILLIS);
            received.forEach(Events::message);
            left -= received.size();
        }
        polling.commitSync();
        Events.say("polled");
    }

    void stop() {
        if (pulling != null) {
            pulling.shutdown();
        }
        if (polling != null) {
            polling.shutdown();
        }
    }
}
