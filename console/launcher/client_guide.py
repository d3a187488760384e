"""The settings of foreign clients for a secured home folder, as text without secrets.

The options of Java are those of `tls.enable` and `tls.client.*` in RocketMQ's TlsSystemConfig.
"""

import shlex
from pathlib import Path
from typing import Protocol

_GUIDE = """\
Clients of the secured Gantry in {home}

  name server   {namesrv_addr}
  authority     {ca}
  keys          {tools_file} (accessKey, secretKey of a super user)

Give each application a user with a list of its own, here or on the page Access control:

    . {client_env}
    mqadmin createUser -c DefaultCluster -u orders-service
    mqadmin createAcl -c DefaultCluster -s User:orders-service -r 'Topic:o*' -a Pub,Sub -d Allow
    mqadmin createAcl -c DefaultCluster -s User:orders-service -r 'Group:o*' -a Sub -d Allow

Java 4.9 and 5.3, options of the JVM, then the keys:

    export JAVA_TOOL_OPTIONS={java_options}
    RPCHook hook = new AclClientRPCHook(new SessionCredentials(accessKey, secretKey));
    new DefaultMQProducer("group", hook);

mqadmin of RocketMQ: the same options, and the keys in $ROCKETMQ_HOME/conf/tools.yml:

    cp {tools_file} "$ROCKETMQ_HOME/conf/tools.yml"

Python (core_broker.client), with the variables of {client_env}:

    Producer("group", "{namesrv_addr}", rpc_hooks=[AclRpcHook(access_key, secret_key)])

Go 2.1.2, C++ (Python package rocketmq 0.4.4) and Node (ali-ons 3.12.0) have no TLS. Start Gantry
with ROCKETMQ_TLS_SERVER_MODE=permissive in the environment: the servers then also accept
connections without TLS, and check signatures as before. The keys:

    Go      producer.WithCredentials(primitive.Credentials{{AccessKey: key, SecretKey: secret}})
    C++     producer.set_session_credentials(key, secret, "")
    Node    new Producer({{accessKeyId: key, accessKeySecret: secret, ...}})
"""


class Files(Protocol):
    """The files of a secured folder."""

    @property
    def home(self) -> Path: ...
    @property
    def tools_file(self) -> Path: ...
    @property
    def trust_cert(self) -> Path: ...
    @property
    def client_env_file(self) -> Path: ...


def client_guide(files: Files, namesrv_addr: str) -> str:
    """Return the settings of all clients, with the files of the folder."""
    return _GUIDE.format(
        home=files.home,
        namesrv_addr=namesrv_addr,
        ca=files.trust_cert,
        tools_file=shlex.quote(str(files.tools_file)),
        client_env=shlex.quote(str(files.client_env_file)),
        java_options=shlex.quote(java_options(files, namesrv_addr)),
    )


def java_options(files: Files, namesrv_addr: str) -> str:
    """Return the options of a JVM; JAVA_TOOL_OPTIONS keeps blanks within double quotes."""
    options = {
        "rocketmq.namesrv.addr": namesrv_addr,
        "tls.enable": "true",
        "tls.test.mode.enable": "false",
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": str(files.trust_cert),
    }
    return " ".join(
        f'"-D{key}={value}"' if " " in value else f"-D{key}={value}"
        for key, value in options.items()
    )
