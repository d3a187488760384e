// The push consumer of the Java driver: concurrent or orderly, by tag or SQL92, clustering or
// broadcasting; optionally the listener fails for every message or replies to requests.

import com.alibaba.fastjson.JSONObject;
import java.lang.reflect.Method;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

final class Consuming {
    private DefaultMQPushConsumer consumer;
    private DefaultMQProducer replying;
    private boolean fails;

    void start(JSONObject command) throws Exception {
        fails = command.getBooleanValue("fails");
        consumer = new DefaultMQPushConsumer(
            command.getString("group"), Signing.hook(command),
            new AllocateMessageQueueAveragely(), command.getBooleanValue("trace"), null);
        consumer.setNamesrvAddr(command.getString("namesrv"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        if (command.getBooleanValue("broadcasting")) {
            broadcast();
        }
        if (command.getBooleanValue("assigned")) {
            // Only RocketMQ 5 has the method.
            DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class)
                .invoke(consumer, false);
        }
        String topic = command.getString("topic");
        String expression = command.getString("expression");
        consumer.subscribe(topic, command.getBooleanValue("sql")
            ? MessageSelector.bySql(expression) : MessageSelector.byTag(expression));
        if (command.getBooleanValue("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (received, context) -> {
                context.setAutoCommit(true);
                return handled(received) ? ConsumeOrderlyStatus.SUCCESS
                    : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (received, context) ->
                handled(received) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS
                    : ConsumeConcurrentlyStatus.RECONSUME_LATER);
        }
        if (command.getBooleanValue("replies")) {
            replying = new DefaultMQProducer(
                command.getString("group") + "-replies", Signing.hook(command));
            replying.setNamesrvAddr(command.getString("namesrv"));
            replying.start();
        }
        consumer.start();
        Events.say("ready");
    }

    private boolean handled(List<MessageExt> received) {
        for (MessageExt message : received) {
            Events.message(message);
            if (replying != null && new String(message.getBody()).startsWith("question")) {
                reply(message);
            }
        }
        return !fails;
    }

    private void reply(MessageExt question) {
        try {
            byte[] answer = ("re: " + new String(question.getBody())).getBytes();
            replying.send(MessageUtil.createReplyMessage(question, answer));
        } catch (Exception error) {
            Events.error(error);
        }
    }

    // The class of the argument moved to another package in RocketMQ 5.
    private void broadcast() throws Exception {
        for (Method method : DefaultMQPushConsumer.class.getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                for (Object model : method.getParameterTypes()[0].getEnumConstants()) {
                    if (((Enum<?>) model).name().equals("BROADCASTING")) {
                        method.invoke(consumer, model);
                    }
                }
            }
        }
    }

    void stop() {
        if (consumer != null) {
            consumer.shutdown();
        }
        if (replying != null) {
            replying.shutdown();
        }
    }
}
