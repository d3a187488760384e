"""/clusters/<cluster>/replicas/"""

from django.urls import path

from console.services.replicas import views
from console.services.replicas.demo import KillPage

app_name = "replicas"

urlpatterns = [
    path("replicas/", views.ReplicasPage.as_view(), name="list"),
    path("replicas/<name:broker>/", views.ReplicaSetPage.as_view(), name="set"),
    path("replicas/<name:broker>/kill/", KillPage.as_view(), name="kill"),
    path("replicas/<name:broker>/elect/<int:number>/", views.ElectPage.as_view(), name="elect"),
]
