from typing import Any

from django.conf import settings
from django.db import migrations


def give_roles(apps: Any, schema_editor: Any) -> None:
    """Accounts from before there were roles: Django's flags say what they could do."""
    app, model = settings.AUTH_USER_MODEL.split(".")
    users = apps.get_model(app, model)
    profiles = apps.get_model("accounts", "Profile")
    for user in users.objects.filter(profile=None).iterator():
        role = "administrator" if user.is_superuser else "operator" if user.is_staff else "viewer"
        profiles.objects.create(user=user, role=role)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [migrations.RunPython(give_roles, migrations.RunPython.noop)]
