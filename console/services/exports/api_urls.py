"""/api/v1/clusters/<cluster>/exports"""

from django.urls import path

from console.services.exports import api

urlpatterns = [path("exports", api.TableExports.as_view(), name="api-exports")]
