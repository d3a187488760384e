"""/api/…"""

from django.urls import include, path

from console.api.docs import DocsPage
from console.api.document import document
from console.frame.areas import mounted

urlpatterns = [
    path("schema/", document, name="api-schema"),
    path("docs/", DocsPage.as_view(url_name="api-schema"), name="api-docs"),
    path("v1/", include(mounted("console_api_urls"))),
    path("v1/clusters/<str:cluster>/", include(mounted("api_urls", "cluster"))),
    path("v1/", include(mounted("api_urls", "console"))),
]
