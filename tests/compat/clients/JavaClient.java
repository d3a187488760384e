// Driver of the Java client (org.apache.rocketmq:rocketmq-client), compiled for 4.9.8 and for 5.3.3.
// Reads JSON commands and prints JSON events, one per line; foreign.py documents both.

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;

public class JavaClient {
    private static Producing producing = new Producing();
    private static Consuming consuming = new Consuming();
    private static Pulling pulling = new Pulling();

    public static void main(String[] arguments) throws Exception {
        // The library may print to System.out; Events writes to the original standard output.
        Events.open();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JSONObject command = JSON.parseObject(line);
            try {
                obey(command);
            } catch (Throwable error) {
                Events.error(error);
            }
        }
    }

    private static void obey(JSONObject command) throws Exception {
        switch (command.getString("do")) {
            case "produce": producing.start(command); break;
            case "send": producing.send(command); break;
            case "send_batch": producing.sendBatch(command); break;
            case "request": producing.request(command); break;
            case "consume": consuming.start(command); break;
            case "pull": pulling.pull(command); break;
            case "poll": pulling.poll(command); break;
            case "query": query(command); break;
            case "view": view(command); break;
            case "mqadmin": mqadmin(command); break;
            case "reset": reset(); Events.say("reset"); break;
            case "stop": reset(); Events.say("stopped"); System.exit(0); break;
            default: throw new IllegalArgumentException(command.toJSONString());
        }
    }

    private static void query(JSONObject command) throws Exception {
        long now = System.currentTimeMillis();
        String topic = command.getString("topic");
        String key = command.getString("key");
        for (MessageExt found
            : producing.client().queryMessage(topic, key, 32, 0, now).getMessageList()) {
            Events.message(found);
        }
        Events.say("queried");
    }

    private static void view(JSONObject command) throws Exception {
        Events.message(
            producing.client().viewMessage(command.getString("topic"), command.getString("id")));
    }

    // Runs a command of mqadmin in this virtual machine; the output of a command is one event.
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
        Events.say("printed", "text", printed.toString("UTF-8"));
    }

    // Replaces producer and consumer for the next test, which saves the start of a virtual machine.
    private static void reset() {
        producing.stop();
        consuming.stop();
        pulling.stop();
        producing = new Producing();
        consuming = new Consuming();
        pulling = new Pulling();
    }
}
