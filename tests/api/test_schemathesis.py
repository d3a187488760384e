"""Hundreds of hostile calls, generated from the OpenAPI document: no call makes the console fail.

The calls come from a fixed seed, so failures are reproducible. For more calls:
`SCHEMA_SEED=7 SCHEMA_EXAMPLES=20 pytest tests/api/test_schemathesis.py`.
"""

import os
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from knox.models import AuthToken
from schemathesis import Case, GenerationMode

from tests.support.cluster import Cluster

SEED = int(os.environ.get("SCHEMA_SEED", "1"))
EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "1"))
#: Errors of the cluster are not errors of the console.
FAULTS_OF_CLUSTERS = {502, 503, 504}
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


@pytest.mark.must_beat(28)
@pytest.mark.timeout(600)
def test_no_call_makes_the_console_fail(staff: User, local: Cluster) -> None:
    _instance, token = AuthToken.objects.create(staff)
    headers = {"Authorization": f"Token {token}"}
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", WSGIHandler())
    operations: list[Any] = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    faults: list[str] = []
    for operation in operations:
        for mode in MODES:
            faults += bombard(operation, mode, headers)
    repeat = f"SCHEMA_SEED={SEED} SCHEMA_EXAMPLES={EXAMPLES} pytest {__file__}"
    assert not faults, "\n".join([*faults[:20], f"repeat with: {repeat}"])


def bombard(operation: Any, mode: GenerationMode, headers: dict[str, str]) -> list[str]:
    """Call one operation with valid or invalid values; return the violations of the schema."""
    faults = []

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def attack(case: Case[Any]) -> None:
        if "cluster" in case.path_parameters:
            case.path_parameters["cluster"] = "local"
        answer = case.call(headers=headers)
        if answer.status_code >= 500 and answer.status_code not in FAULTS_OF_CLUSTERS:
            faults.append(f"{answer.status_code}: {case.as_curl_command()}")
        if answer.status_code >= 400:
            kind = answer.headers["content-type"][0]
            if kind != "application/problem+json":
                faults.append(f"{answer.status_code} is {kind}: {case.as_curl_command()}")

    # Operations without parameters have no invalid calls.
    with suppress(Unsatisfiable):
        attack()
    return faults
