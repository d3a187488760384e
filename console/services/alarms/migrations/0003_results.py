"""Results of notices as code and values; the sentences of older notices stay."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("alarms", "0002_default_rules")]

    operations = [
        migrations.AddField("delivery", "result", models.JSONField(default=dict, blank=True)),
    ]
