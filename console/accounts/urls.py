"""/accounts/…"""

from django.contrib.auth.views import LogoutView
from django.urls import path

from console.accounts import role_pages, sign_in, tokens, users, views
from console.accounts.oidc import views as oidc_views
from console.accounts.security_page import SecurityPage
from console.frame.access import Need, needs

app_name = "accounts"

urlpatterns = [
    path("accounts/login/", sign_in.SignInPage.as_view(), name="login"),
    path("accounts/login/code/", sign_in.CodePage.as_view(), name="code"),
    path("accounts/login/enrol/", sign_in.EnrolPage.as_view(), name="enrol"),
    path("accounts/oidc/", oidc_views.StartPage.as_view(), name="oidc"),
    path("accounts/oidc/callback/", oidc_views.CallbackPage.as_view(), name="oidc-callback"),
    path("accounts/logout/", needs(Need.OPEN)(LogoutView.as_view()), name="logout"),
    path("accounts/password/", views.PasswordPage.as_view(), name="password"),
    path("accounts/security/", SecurityPage.as_view(), name="security"),
    path("accounts/theme/", views.choose_theme, name="theme"),
    path("accounts/time-zone/", tokens.ZonePage.as_view(), name="zone"),
    path("accounts/tokens/", tokens.TokensPage.as_view(), name="tokens"),
    path("accounts/users/", users.UserListPage.as_view(), name="users"),
    path("accounts/users/create/", users.UserCreatePage.as_view(), name="create"),
    path("accounts/roles/", role_pages.RoleListPage.as_view(), name="roles"),
    path("accounts/roles/create/", role_pages.RoleCreatePage.as_view(), name="role-create"),
    path("accounts/roles/one/<str:role>/", role_pages.RolePage.as_view(), name="role"),
    path("accounts/users/<int:number>/", users.UserPage.as_view(), name="user"),
]
