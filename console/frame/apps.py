"""The frame as a Django app: shared templates, template tags, translations, the URL converter."""

from django.apps import AppConfig
from django.urls import register_converter

from console.frame.names import NameConverter


class FrameConfig(AppConfig):
    name = "console.frame"
    label = "frame"

    def ready(self) -> None:
        register_converter(NameConverter, "name")
