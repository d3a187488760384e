"""/clusters/<cluster>/masking/"""

from django.urls import path

from console.services.masking import views

app_name = "masking"

urlpatterns = [
    path("masking/", views.RuleListPage.as_view(), name="list"),
    path("masking/create/", views.RuleCreatePage.as_view(), name="create"),
    path("masking/<int:number>/", views.RuleOnePage.as_view(), name="rule"),
]
