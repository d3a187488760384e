"""/ws/clusters/<cluster>/alarms"""

from django.urls import path

from console.services.alarms.feed import AlarmsFeed

urlpatterns = [path("alarms", AlarmsFeed.as_asgi())]
