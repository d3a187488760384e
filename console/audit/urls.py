"""/audit/…"""

from django.urls import path

from console.audit import views

app_name = "audit"

urlpatterns = [
    path("audit/", views.AuditPage.as_view(), name="list"),
    path("audit/export/<str:form>", views.export, name="export"),
    path("audit/<int:number>/", views.AuditRowPage.as_view(), name="row"),
]
