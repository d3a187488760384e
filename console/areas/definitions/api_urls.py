"""/api/v1/clusters/<cluster>/definitions"""

from django.urls import path

from console.areas.definitions.api import DefinitionsResource

urlpatterns = [path("definitions", DefinitionsResource.as_view(), name="api-definitions")]
