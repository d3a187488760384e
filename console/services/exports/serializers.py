"""Request and response fields shared by all exports of the API."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from console.api.serializers import BodySerializer
from console.services.exports.files import FORMATS, ROWS_MAX, ROWS_USUAL, SHEET_ROWS_MAX


class ExportFileSerializer(BodySerializer):
    """The file format, and the maximum row count."""

    format = serializers.ChoiceField(choices=list(FORMATS), default="jsonl")
    most = serializers.IntegerField(min_value=1, max_value=ROWS_MAX, default=ROWS_USUAL)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        if values["format"] == "xlsx" and values["most"] > SHEET_ROWS_MAX:
            raise ValidationError({"most": [f"At most {SHEET_ROWS_MAX} rows."]})
        return values


class ExportStartedSerializer(serializers.Serializer[Any]):
    job = serializers.IntegerField(
        help_text="Job number; state and file of the job are below `/jobs`."
    )
