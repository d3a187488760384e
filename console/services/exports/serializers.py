"""What all exports are asked for and answer by the API, whatever their rows are."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from console.api.serializers import BodySerializer
from console.services.exports.files import FORMATS, ROWS_MAX, ROWS_USUAL, SHEET_ROWS_MAX


class ExportFileSerializer(BodySerializer):
    """The kind of file, and how many rows it may have."""

    format = serializers.ChoiceField(choices=list(FORMATS), default="jsonl")
    most = serializers.IntegerField(min_value=1, max_value=ROWS_MAX, default=ROWS_USUAL)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given["format"] == "xlsx" and given["most"] > SHEET_ROWS_MAX:
            raise ValidationError({"most": [f"At most {SHEET_ROWS_MAX} rows."]})
        return given


class ExportStartedSerializer(serializers.Serializer[Any]):
    job = serializers.IntegerField(help_text="Its state and file are below `/jobs`.")
