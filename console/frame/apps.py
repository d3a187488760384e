"""The frame as a Django app: shared templates, template tags and their translations."""

from django.apps import AppConfig


class FrameConfig(AppConfig):
    name = "console.frame"
    label = "frame"
