"""/api/v1/clusters/<cluster>/findings"""

from django.urls import path

from console.services.findings.api import FindingList

urlpatterns = [path("findings", FindingList.as_view(), name="api-findings")]
