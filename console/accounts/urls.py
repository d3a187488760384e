"""/accounts/…"""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from console.access import Need, needs
from console.accounts import views

app_name = "accounts"

urlpatterns = [
    path("login/", views.SignInPage.as_view(), name="login"),
    path("logout/", needs(Need.OPEN)(LogoutView.as_view()), name="logout"),
    path("password/", views.PasswordPage.as_view(), name="password"),
    path("theme/", views.choose_theme, name="theme"),
]
