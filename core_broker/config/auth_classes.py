"""Class names of RocketMQ 5.3's access control, aliases of what is built in.

A settings file written for RocketMQ names these classes. Other names would be Java code, and end
the start.
"""

from typing import Literal

AuthenticationProvider = Literal[
    "", "org.apache.rocketmq.auth.authentication.provider.DefaultAuthenticationProvider"
]
AuthenticationMetadataProvider = Literal[
    "", "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
]
AuthenticationStrategy = Literal[
    "",
    "org.apache.rocketmq.auth.authentication.strategy.StatelessAuthenticationStrategy",
    "org.apache.rocketmq.auth.authentication.strategy.StatefulAuthenticationStrategy",
]
AuthorizationProvider = Literal[
    "", "org.apache.rocketmq.auth.authorization.provider.DefaultAuthorizationProvider"
]
AuthorizationMetadataProvider = Literal[
    "", "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider"
]
AuthorizationStrategy = Literal[
    "",
    "org.apache.rocketmq.auth.authorization.strategy.StatelessAuthorizationStrategy",
    "org.apache.rocketmq.auth.authorization.strategy.StatefulAuthorizationStrategy",
]
#: STRICT: every request code needs a permission. JAVA: the decisions of RocketMQ 5.3.3.
AuthorizationMode = Literal["STRICT", "JAVA"]
