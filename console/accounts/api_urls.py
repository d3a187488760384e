"""/api/v1/whoami"""

from django.urls import path

from console.accounts import api

urlpatterns = [path("whoami", api.WhoAmI.as_view(), name="api-whoami")]
