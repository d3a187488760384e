"""Django app of the API, with the table of responses stored for repeated requests."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "console.api"
    label = "api"
