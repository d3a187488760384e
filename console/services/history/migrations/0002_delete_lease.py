"""The table of leases is that of `console.services.leases`; a lease of some seconds is no loss."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("history", "0001_initial")]

    operations = [migrations.DeleteModel(name="Lease")]
