// Driver of the Java client (org.apache.rocketmq:rocketmq-client), compiled for 4.9.8 and for 5.3.3.
// Reads one JSON command a line and prints one JSON event a line; see foreign.py for both.

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

    public static void main(String[] arguments) throws Exception {
        // The library may print to System.out; events go to the real one, which Events holds.
        Events.open();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JSONObject command = JSON.parseObject(line);
            try {
                obey(command);
            } catch (Throwable error) {
                Events.say("error", "text", String.valueOf(error));
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
        Events.say("printed", "text", printed.toString("UTF-8"));
    }

    // Ready for the next test, without the second that a virtual machine takes to start.
    private static void reset() {
        producing.stop();
        consuming.stop();
        producing = new Producing();
        consuming = new Consuming();
    }
}
