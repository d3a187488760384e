"""The leases of periodic work; before, the history had the table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("holder", models.CharField(max_length=255)),
                ("until_ms", models.BigIntegerField()),
            ],
        ),
    ]
