"""Every address of the installation."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import URLPattern, URLResolver, include, path, register_converter

from routing_admin import api
from routing_admin.views import (
    config,
    history,
    routes,
    routes_editor,
    session,
    settings,
    signin,
    signin_language,
    signin_link,
    simulate,
    users,
    users_own,
)
from routing_admin.views.routes_address import TaskType

register_converter(TaskType, "task")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("routing_admin.gateway.urls")),
    path("", include("routing_admin.probes")),
    path("api/v1/", api.urls),
    path("login/", signin.SignIn.as_view(), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("join/<str:uid>/<str:token>/", signin_link.join, name="join"),
    path("password/", users_own.password_change, name="password_change"),
    path("language/", signin_language.set_language, name="set_language"),
    path("theme/", session.set_theme, name="set_theme"),
    path("undo/<int:number>/", session.undo, name="undo"),
    path("routes/", routes.routes, name="routes"),
    path("routes/new/", routes_editor.route_new, name="route_new"),
    path("routes/<task:task_type>/", routes_editor.route, name="route"),
    path("routes/<task:task_type>/enabled/", routes.enabled, name="route_enabled"),
    path("routes/<task:task_type>/delete/", routes.delete, name="route_delete"),
    path("simulate/", simulate.simulate_page, name="simulate"),
    path("aliases/", routes.alias, name="alias"),
    path("config/", config.config, name="config"),
    path("config/import/", config.config_import, name="config_import"),
    path("config/export/<str:name>/", config.config_export, name="config_export"),
    path("history/", history.history, name="history"),
    path("history/compare/", history.compare, name="compare"),
    path("history/audit/", history.audit, name="audit"),
    path("history/<int:number>/", history.revision, name="revision"),
    path("history/<int:number>/restore/", history.restore, name="restore"),
    path("settings/", settings.page, name="settings"),
    path("settings/default-language/", settings.default_language, name="settings_default_language"),
    path("settings/language/", settings.language_save, name="settings_language_save"),
    path("settings/language/remove/", settings.language_remove, name="settings_language_remove"),
    path("settings/retention/", settings.retention, name="settings_retention"),
    path("settings/bodies/", settings.bodies, name="settings_bodies"),
    path("settings/demo/remove/", settings.demo_remove, name="demo_remove"),
    path("users/", users.users, name="users"),
    path("users/invite/", users.user_invite, name="user_invite"),
    path("users/<int:pk>/", users.user, name="user"),
    path("users/<int:pk>/role/", users.user_role, name="user_role"),
    path("users/<int:pk>/active/", users.user_active, name="user_active"),
    path("users/<int:pk>/link/", users.user_link, name="user_link"),
    path("users/<int:pk>/withdraw/", users.user_withdraw, name="user_withdraw"),
    path("", include("routing_admin.log_urls")),
    path("", include("capabilities.urls")),
    path("", include("artifacts.urls")),
]

handler500 = "routing_admin.views.errors.server_error"
