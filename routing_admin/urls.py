"""Every address of the installation."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import URLPattern, URLResolver, include, path, register_converter

from routing_admin.agents_api import routing
from routing_admin.views import session
from routing_admin.views.configuration import pages
from routing_admin.views.history import pages
from routing_admin.views.people import language, link, password, signin, users
from routing_admin.views.routes import editor, listing
from routing_admin.views.routes.address import TaskType
from routing_admin.views.settings import pages
from routing_admin.views.simulate import pages

register_converter(TaskType, "task")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("routing_admin.gateway.urls")),
    path("", include("routing_admin.server.health_checks")),
    path("api/v1/", routing.urls),
    path("login/", signin.SignIn.as_view(), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("join/<str:uid>/<str:token>/", link.join, name="join"),
    path("password/", password.password_change, name="password_change"),
    path("language/", language.set_language, name="set_language"),
    path("theme/", session.set_theme, name="set_theme"),
    path("undo/<int:number>/", session.undo, name="undo"),
    path("routes/", listing.routes, name="routes"),
    path("routes/new/", editor.route_new, name="route_new"),
    path("routes/<task:task_type>/", editor.route, name="route"),
    path("routes/<task:task_type>/enabled/", listing.enabled, name="route_enabled"),
    path("routes/<task:task_type>/delete/", listing.delete, name="route_delete"),
    path("simulate/", pages.simulate_page, name="simulate"),
    path("aliases/", listing.alias, name="alias"),
    path("config/", pages.config, name="config"),
    path("config/import/", pages.config_import, name="config_import"),
    path("config/export/<str:name>/", pages.config_export, name="config_export"),
    path("history/", pages.history, name="history"),
    path("history/compare/", pages.compare, name="compare"),
    path("history/audit/", pages.audit, name="audit"),
    path("history/<int:number>/", pages.revision, name="revision"),
    path("history/<int:number>/restore/", pages.restore, name="restore"),
    path("settings/", pages.page, name="settings"),
    path("settings/default-language/", pages.default_language, name="settings_default_language"),
    path("settings/language/", pages.language_save, name="settings_language_save"),
    path("settings/language/remove/", pages.language_remove, name="settings_language_remove"),
    path("settings/retention/", pages.retention, name="settings_retention"),
    path("settings/bodies/", pages.bodies, name="settings_bodies"),
    path("settings/demo/remove/", pages.demo_remove, name="demo_remove"),
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
