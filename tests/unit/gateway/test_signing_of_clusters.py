"""The credentials that a gateway signs with."""

from pytest_django import Settings

from console.gateway.engine.clusters import Gateway
from console.gateway.engine.signing import Credentials


def test_credentials_of_the_environment_count_after_an_unsigned_question(
    settings: Settings,
) -> None:
    settings.CONSOLE_CLUSTERS = {"local": "127.0.0.1:1"}
    settings.CONSOLE_CLUSTER_CREDENTIALS = {}
    gateway = Gateway()
    assert gateway.cluster("local").signing.current is None
    given = Credentials("root", "secret-of-root")
    settings.CONSOLE_CLUSTER_CREDENTIALS = {"local": given}
    signing = gateway.cluster("local").signing
    assert signing.current == given
    assert gateway.cluster("local").signing is signing, "sessions share one set of credentials"
