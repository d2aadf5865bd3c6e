from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.people import account, identities, language, signin, users

urlpatterns: list[URLPattern] = [
    path("login/", signin.SignIn.as_view(), name="login"),
    path("sign-in/<str:provider_id>/", identities.sign_in_with, name="sign_in_with"),
    *(path(pattern, identities.sign_in_back, kwargs, name=name) for pattern, kwargs, name in identities.CALLBACKS),
    path("identity/<int:pk>/unlink/", identities.identity_unlink, name="identity_unlink"),
    path("logout/", signin.SignOut.as_view(), name="logout"),
    path("join/<str:uid>/<str:token>/", account.join, name="join"),
    path("password/", account.password_change, name="password_change"),
    path("sessions/end/", account.session_end, name="session_end"),
    path("tokens/", account.tokens, name="tokens"),
    path("tokens/new/", account.token_new, name="token_new"),
    path("tokens/<str:public_id>/revoke/", account.token_revoke, name="token_revoke"),
    path("language/", language.set_language, name="set_language"),
    path("users/", users.users, name="users"),
    path("users/invite/", users.user_invite, name="user_invite"),
    path("users/<int:pk>/", users.user, name="user"),
    path("users/<int:pk>/role/", users.user_role, name="user_role"),
    path("users/<int:pk>/active/", users.user_active, name="user_active"),
    path("users/<int:pk>/link/", users.user_link, name="user_link"),
    path("users/<int:pk>/sessions/end/", account.user_session_end, name="user_session_end"),
    path("users/<int:pk>/withdraw/", users.user_withdraw, name="user_withdraw"),
]
