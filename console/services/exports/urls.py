"""/clusters/<cluster>/exports/…"""

from django.urls import path

from console.services.exports import views

app_name = "exports"
urlpatterns = [path("exports/<str:table>/", views.TablePage.as_view(), name="table")]
