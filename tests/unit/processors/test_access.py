"""processors/access.py: answers to access-control tools with aclEnable=false."""

import pytest

from core_broker.processors.access import SWITCHED_OFF
from core_broker.remoting.codes import RequestCode, ResponseCode
from tests.support.broker_harness import BrokerHarness


@pytest.mark.parametrize(
    ("code", "fields", "answer"),
    [
        (
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
            {"accessKey": "rocketmq", "secretKey": "12345678"},
            ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED,
        ),
        (
            RequestCode.DELETE_ACL_CONFIG,
            {"accessKey": "rocketmq"},
            ResponseCode.DELETE_ACL_CONFIG_FAILED,
        ),
        (
            RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
            {"globalWhiteAddrs": "10.0.0.*"},
            ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED,
        ),
        (RequestCode.GET_BROKER_CLUSTER_ACL_INFO, {}, ResponseCode.SYSTEM_ERROR),
        (RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG, {}, ResponseCode.SYSTEM_ERROR),
    ],
)
async def test_every_access_control_code_has_a_remark(
    broker: BrokerHarness, code: RequestCode, fields: dict[str, str], answer: ResponseCode
) -> None:
    response = await broker.ask(code, fields)
    assert (response.code, response.remark) == (answer, SWITCHED_OFF)
    assert not broker.saver.saved
