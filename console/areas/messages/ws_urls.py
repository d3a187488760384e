"""/ws/clusters/<cluster>/…"""

from django.urls import path

from console.areas.messages.feeds import TailFeed

urlpatterns = [path("messages/tail", TailFeed.as_asgi())]
