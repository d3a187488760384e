"""/clusters/<cluster>/body-schemas/"""

from django.urls import path

from console.services.schemas import views

app_name = "schemas"

urlpatterns = [
    path("body-schemas/", views.SchemaListPage.as_view(), name="list"),
    path("body-schemas/upload/", views.SchemaUploadPage.as_view(), name="upload"),
    path("body-schemas/rules/create/", views.RuleCreatePage.as_view(), name="rule-create"),
    path("body-schemas/rules/<int:number>/", views.RulePage.as_view(), name="rule"),
    path("body-schemas/schema/<str:schema>/", views.SchemaPage.as_view(), name="schema"),
]
