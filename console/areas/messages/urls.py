"""/clusters/<cluster>/messages/…"""

from django.urls import path

from console.areas.messages import direct, export_page, send_page, tail_page, topic_tab, views

app_name = "message"
urlpatterns = [
    path("messages/", views.MessageListPage.as_view(), name="list"),
    path("topics/<name:topic>/messages/", topic_tab.TopicMessagesPage.as_view(), name="topic"),
    path("messages/find/", views.FindPage.as_view(), name="find"),
    path("messages/export/", export_page.ExportPage.as_view(), name="export"),
    path("messages/send/", send_page.SendPage.as_view(), name="send"),
    path("messages/sent/", send_page.SentPage.as_view(), name="sent"),
    path("messages/tail/", tail_page.TailPage.as_view(), name="tail"),
    path("messages/deliver/", direct.DeliverPage.as_view(), name="deliver"),
    path("messages/<name:offset_msg_id>/", views.MessagePage.as_view(), name="detail"),
    path("messages/<name:offset_msg_id>/body/", views.BodyDownload.as_view(), name="body"),
]
