"""Configured resources as a Django app: templates of their generic pages.

The models of this package belong to the app `clusters`: its migrations create the tables.
"""

from django.apps import AppConfig


class ResourcesConfig(AppConfig):
    name = "console.resources"
    label = "resources"
