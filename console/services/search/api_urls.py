"""/api/v1/clusters/<cluster>/search and /saved-views"""

from django.urls import path

from console.services.search import saved, views

urlpatterns = [
    path("search", views.SearchResource.as_view(), name="api-search"),
    path("saved-views", saved.SavedViews.as_view(), name="api-saved-views"),
    path("saved-views/<int:pk>", saved.SavedViewOne.as_view(), name="api-saved-view"),
]
