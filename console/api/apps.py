"""The API's own table: answers that are kept for a repeated request."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "console.api"
    label = "api"
