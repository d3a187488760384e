"""Options of the data source: accepted values, and the errors for wrong values."""

from pathlib import Path

import pytest

from core_broker.errors import ClientError
from spark_jobs.sources.columns import COLUMNS, spark_schema
from spark_jobs.sources.offsets import EARLIEST, LATEST
from spark_jobs.sources.options import OPTION_NAMES, read_options

GIVEN = {"namesrv": "a:1;b:2", "topic": "orders"}


def test_defaults() -> None:
    options = read_options(GIVEN, COLUMNS)
    assert (options.namesrv, options.topic, options.group) == (
        "a:1;b:2",
        "orders",
        "TOOLS_CONSUMER",
    )
    assert (options.starting_offsets, options.ending_offsets) == (EARLIEST, LATEST)
    assert options.fail_on_data_loss


def test_option_names_are_case_insensitive() -> None:
    more = {"MAXROWSPERPARTITION": "10", "failondataloss": "FALSE", "Columns": "body, queue_id"}
    options = read_options(GIVEN | more, COLUMNS)
    assert (options.rows_per_partition_max, options.fail_on_data_loss) == (10, False)
    assert options.columns == ("body", "queue_id")
    assert spark_schema(options.columns) == "body binary, queue_id int"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"namesrv": ""}, "needs the option namesrv"),
        ({"topic": " "}, "needs the option topic"),
        ({"startOffsets": "latest"}, "Did you mean startingOffsets"),
        ({"whatever": "1"}, "has no option whatever"),
        ({"maxRowsPerPartition": "0"}, "maxRowsPerPartition must be a number"),
        ({"maxRowsPerPartition": "many"}, "'many'"),
        ({"retryTimeoutMs": "9" * 30}, "retryTimeoutMs must be a number"),
        ({"failOnDataLoss": "no"}, "must be true or false"),
        ({"columns": "body,size"}, "holds size; there are topic, broker_name"),
        ({"columns": ","}, "holds nothing"),
        ({"endingOffsets": "tomorrow"}, "endingOffsets must be"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp must be milliseconds"),
        ({"startingTimestamp": "9" * 40}, "startingTimestamp must be milliseconds"),
        ({"endingTimestamp": "-5"}, "endingTimestamp must be milliseconds"),
        ({"startingTimestamp": "1", "startingOffsets": "latest"}, "not both"),
        ({"startingTimestamp": "5", "endingTimestamp": "4"}, "lies before"),
        ({"tags": "||"}, "names no tag"),
        ({"tags": "x" * 5000}, "longer than 4096"),
        ({"accessKey": "k"}, "go together"),
        ({"secretKey": "k"}, "go together"),
        ({"maxRowsPerSecond": "-1"}, "maxRowsPerSecond must be a number"),
        ({"columns": "body,body"}, "a name twice"),
    ],
)
def test_a_wrong_option_is_named(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ClientError, match=said):
        read_options(GIVEN | wrong, COLUMNS)


def test_times_keys_and_tags() -> None:
    given = {"startingTimestamp": "2026-11-05T13:00:00Z", "endingTimestamp": "1793883600001"}
    keys = {"accessKey": "reader", "secretKey": "hush", "securityToken": "psst", "tags": "a || b"}
    options = read_options(GIVEN | given | keys, COLUMNS)
    assert (options.starting_ms, options.ending_ms) == (1_793_883_600_000, 1_793_883_600_001)
    assert (options.tags, len(options.hooks)) == ("a || b", 1)
    assert "hush" not in repr(options)
    assert "psst" not in repr(options)
    assert read_options(GIVEN, COLUMNS).hooks == []


def test_the_documents_name_every_option_and_column() -> None:
    text = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
    assert [name for name in (*OPTION_NAMES, *COLUMNS) if f"`{name}`" not in text] == []
