"""/api/…"""

from django.urls import include, path
from django.views.decorators.cache import cache_page
from drf_spectacular.views import SpectacularAPIView

from console.api.docs import DocsPage
from console.frame.areas import mounted

#: Freshness of the OpenAPI document, seconds: to generate it takes 0.4 s of CPU.
SCHEMA_FRESH_S = 300

urlpatterns = [
    path("schema/", cache_page(SCHEMA_FRESH_S)(SpectacularAPIView.as_view()), name="api-schema"),
    path("docs/", DocsPage.as_view(url_name="api-schema"), name="api-docs"),
    path("v1/", include(mounted("console_api_urls"))),
    path("v1/clusters/<str:cluster>/", include(mounted("api_urls", "cluster"))),
    path("v1/", include(mounted("api_urls", "console"))),
]
