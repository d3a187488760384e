from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]

    operations = [
        migrations.RemoveConstraint(model_name="job", name="one_active_job_per_kind"),
        migrations.AddField(
            model_name="job",
            name="scope",
            field=models.CharField(blank=True, default="", max_length=255),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="job",
            name="detail",
            field=models.CharField(blank=True, default="", max_length=200),
            preserve_default=False,
        ),
        migrations.RenameField(model_name="job", old_name="rows", new_name="done"),
        migrations.RenameField(model_name="job", old_name="rows_total", new_name="total"),
        migrations.AlterField(model_name="job", name="kind", field=models.CharField(max_length=16)),
        migrations.AlterField(
            model_name="job",
            name="state",
            field=models.CharField(
                choices=[
                    ("queued", "waiting"),
                    ("running", "running"),
                    ("paused", "paused"),
                    ("succeeded", "succeeded"),
                    ("failed", "failed"),
                    ("cancelled", "cancelled"),
                ],
                default="queued",
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["paused", "queued", "running"])),
                fields=("cluster", "kind", "scope"),
                name="one_active_job_per_scope",
            ),
        ),
    ]
