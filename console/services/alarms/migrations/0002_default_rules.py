"""The rules of a new console; an administrator may switch them off or delete them."""

import time
from typing import Any

from django.db import migrations

from console.services.alarms.defaults import DEFAULTS


def create(apps: Any, schema_editor: Any) -> None:
    rule = apps.get_model("alarms", "AlarmRule")
    now_ms = time.time_ns() // 1_000_000
    for key, values in DEFAULTS.items():
        rule.objects.create(default_key=key, changed_ms=now_ms, **values)


def remove(apps: Any, schema_editor: Any) -> None:
    apps.get_model("alarms", "AlarmRule").objects.exclude(default_key="").delete()


class Migration(migrations.Migration):
    dependencies = [("alarms", "0001_initial")]

    operations = [migrations.RunPython(create, remove)]
