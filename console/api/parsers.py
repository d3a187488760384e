"""Parser of request bodies: JSON of bounded size and depth."""

from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser
from rest_framework.status import HTTP_413_REQUEST_ENTITY_TOO_LARGE


class TooLarge(APIException):
    status_code = HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = _("The body is larger than the console accepts.")


class BoundedJSONParser(JSONParser):
    """Limits the size of JSON bodies; Django limits only forms."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(most + 1)
        if len(body) > most:
            raise TooLarge
        try:
            return super().parse(BytesIO(body), media_type, parser_context)
        except RecursionError:
            raise ParseError(_("The JSON is nested too deeply.")) from None
