"""/api/v1/clusters/<cluster>/masking-rules"""

from django.urls import path

from console.services.masking import api

urlpatterns = [
    path("masking-rules", api.MaskingRuleList.as_view(), name="api-masking-rules"),
    path(
        "masking-rules:preview", api.MaskingRulePreview.as_view(), name="api-masking-rules-preview"
    ),
    path("masking-rules/<int:number>", api.MaskingRuleOne.as_view(), name="api-masking-rule"),
]
