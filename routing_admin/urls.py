"""Every address of the installation."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, URLResolver, include, path, register_converter
from django.views.i18n import set_language

from routing_admin import api
from routing_admin.views import routes, routes_editor, session
from routing_admin.views.routes_address import TaskType

register_converter(TaskType, "task")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("routing_admin.gateway.urls")),
    path("", include("routing_admin.probes")),
    path("api/v1/", api.urls),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("language/", login_not_required(set_language), name="set_language"),
    path("theme/", session.set_theme, name="set_theme"),
    path("undo/<int:number>/", session.undo, name="undo"),
    path("routes/", routes.routes, name="routes"),
    path("routes/new/", routes_editor.route_new, name="route_new"),
    path("routes/<task:task_type>/", routes_editor.route, name="route"),
    path("routes/<task:task_type>/enabled/", routes.enabled, name="route_enabled"),
    path("routes/<task:task_type>/delete/", routes.delete, name="route_delete"),
    path("aliases/", routes.alias, name="alias"),
    path("", include("capabilities.urls")),
    path("", include("artifacts.urls")),
]

handler500 = "routing_admin.views.errors.server_error"
