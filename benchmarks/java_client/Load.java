import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * Load by the Java client: Load produce|consume NAMESRV TOPIC THREADS BODY_BYTES SECONDS.
 *
 * <p>Resembles RocketMQ's own benchmark: threads with a shared producer send synchronously, or one
 * push consumer receives. Prints the number of messages per second, one line per second.
 */
public final class Load {
    private static final LongAdder DONE = new LongAdder();
    private static final LongAdder FAILED = new LongAdder();

    public static void main(String[] args) throws Exception {
        String topic = args[2];
        int threads = Integer.parseInt(args[3]);
        int seconds = Integer.parseInt(args[5]);
        if (args[0].equals("produce")) {
            produce(args[1], topic, threads, Integer.parseInt(args[4]));
        } else {
            consume(args[1], topic, threads);
        }
        long before = 0;
        for (int second = 0; second < seconds; second++) {
            Thread.sleep(1000);
            long now = DONE.sum();
            System.out.println("per_second " + (now - before));
            before = now;
        }
        System.out.println("failed " + FAILED.sum());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void produce(String namesrv, String topic, int threads, int bytes)
            throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("bench_producer");
        producer.setNamesrvAddr(namesrv);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.start();
        byte[] body = new byte[bytes];
        Arrays.fill(body, (byte) 'a');
        List<Thread> all = new ArrayList<>();
        for (int number = 0; number < threads; number++) {
            all.add(new Thread(() -> send(producer, topic, body)));
        }
        all.forEach(Thread::start);
    }

    private static void send(DefaultMQProducer producer, String topic, byte[] body) {
        while (true) {
            try {
                SendResult result = producer.send(new Message(topic, body));
                if (result.getSendStatus() == SendStatus.SEND_OK) {
                    DONE.increment();
                } else {
                    FAILED.increment();
                }
            } catch (Exception failure) {
                FAILED.increment();
            }
        }
    }

    private static void consume(String namesrv, String topic, int threads) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(topic + "_consumer");
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeThreadMin(threads);
        consumer.setConsumeThreadMax(threads);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(
                (MessageListenerConcurrently)
                        (messages, context) -> {
                            DONE.add(messages.size());
                            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                        });
        consumer.start();
    }
}
