"""/api/v1/clusters/<cluster>/body-schemas, body-rules"""

from django.urls import path

from console.services.schemas import api

urlpatterns = [
    path("body-schemas", api.BodySchemaList.as_view(), name="api-body-schemas"),
    path("body-schemas/<str:schema>", api.BodySchemaOne.as_view(), name="api-body-schema"),
    path("body-rules", api.BodyRuleList.as_view(), name="api-body-rules"),
    path("body-rules/<int:number>", api.BodyRuleOne.as_view(), name="api-body-rule"),
]
