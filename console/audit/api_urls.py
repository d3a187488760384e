"""/api/v1/audit…"""

from django.urls import path

from console.audit import api

urlpatterns = [
    path("audit", api.AuditList.as_view(), name="api-audit"),
    path("audit/<int:number>", api.AuditOne.as_view(), name="api-audit-row"),
]
