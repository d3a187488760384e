"""/api/v1/clusters/<cluster>/history"""

from django.urls import path

from console.services.history import api

urlpatterns = [path("history", api.History.as_view(), name="api-history")]
