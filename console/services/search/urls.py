"""/clusters/<cluster>/search/ and /saved-views/"""

from django.urls import path

from console.services.search import saved, views

app_name = "search"
urlpatterns = [
    path("search/", views.SearchPage.as_view(), name="search"),
    path("saved-views/", saved.SavedPage.as_view(), name="saved"),
]
