// The hook that signs the requests of a client, or null without "account" in the command.

import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.remoting.RPCHook;

final class Signing {
    static RPCHook hook(JSONObject command) {
        String account = command.getString("account");
        return account == null ? null
            : new AclClientRPCHook(
                new SessionCredentials(account, command.getString("secret")));
    }
}
