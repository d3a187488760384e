"""Response codes and their explanations; the text of every error names the cause."""

import pytest

from core_broker import errors
from core_broker.remoting.codes import (
    PROTOCOL_VERSION,
    LanguageCode,
    RequestCode,
    ResponseCode,
)


def test_every_refusal_has_the_name_of_its_code() -> None:
    for code, refusal in errors.REFUSALS.items():
        assert ResponseCode(code).name == refusal.name
        assert refusal.hint.endswith(".")


def test_every_code_but_success_is_explained() -> None:
    assert set(errors.REFUSALS) == set(ResponseCode) - {ResponseCode.SUCCESS}


def test_well_known_code_numbers() -> None:
    assert PROTOCOL_VERSION == 409
    assert LanguageCode.PYTHON.value == 3
    assert RequestCode(310) is RequestCode.SEND_MESSAGE_V2
    assert RequestCode(200050) is RequestCode.POP_MESSAGE
    assert ResponseCode["POLLING_FULL"].name == "UPDATE_AND_CREATE_ACL_CONFIG_FAILED"


@pytest.mark.parametrize(
    ("code", "retriable", "route_stale"),
    [(1, True, False), (14, True, True), (17, True, True), (13, False, False), (26, False, False)],
)
def test_refusals_have_retry_and_route_advice(
    code: int, retriable: bool, route_stale: bool
) -> None:
    refused = errors.RequestRefused(code, "why\nSee elsewhere", "127.0.0.1:10911")
    assert refused.retriable is retriable
    assert refused.route_stale is route_stale
    assert str(refused) == (f"127.0.0.1:10911 refused with {ResponseCode(code).name} ({code}): why")


def test_a_refusal_without_remark_gives_the_hint() -> None:
    assert "Create the group first" in str(errors.RequestRefused(26))
    assert str(errors.RequestRefused(9999)) == "The server refused with UNKNOWN (9999)."


def test_sentences() -> None:
    assert str(errors.ConnectFailed("h:1", "refused")) == "Cannot connect to h:1: refused."
    assert str(errors.RequestTimeout("h:1", RequestCode.PULL_MESSAGE, 3000)) == (
        "h:1 did not answer PULL_MESSAGE (11) within 3000 ms."
    )
    assert "request code 77" in str(errors.RequestTimeout("h:1", 77, 1))
    assert str(errors.ConnectionClosed("h:1", "idle")) == "The connection to h:1 was closed: idle."
    assert str(errors.StoreCorrupt("/s/c", 5, "bad magic")) == (
        "/s/c is corrupt at offset 5: bad magic."
    )
    assert "storePathRootDir" in str(errors.StoreLocked("/s"))
    assert "disk full" in str(errors.StoreReadOnly("disk full"))


def test_settings_error_names_every_problem() -> None:
    problems = [
        errors.SettingProblem("listenPort", "a number", "x", "broker.conf", 3),
        errors.SettingProblem("lisenPort", "no such setting", nearest="listenPort"),
    ]
    error = errors.SettingsError(problems)
    assert error.problems == problems
    assert str(error).split("\n") == [
        "broker.conf:3: listenPort = 'x': a number",
        "lisenPort: no such setting (did you mean listenPort?)",
    ]


def test_all_errors_have_a_common_base() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    raised = [kind for kind in kinds if issubclass(kind, Exception)]
    assert len(raised) >= 13
    assert all(issubclass(kind, errors.GantryError) for kind in raised)
