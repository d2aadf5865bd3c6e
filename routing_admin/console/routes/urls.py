from __future__ import annotations

from django.urls import URLPattern, path, register_converter

from routing_admin.console.routes import aliases, editor, listing
from routing_admin.console.routes.draft import TaskType

register_converter(TaskType, "task")

urlpatterns: list[URLPattern] = [
    path("routes/", listing.routes, name="routes"),
    path("routes/new/", editor.route_new, name="route_new"),
    path("routes/<task:task_type>/", editor.route, name="route"),
    path("routes/<task:task_type>/enabled/", listing.enabled, name="route_enabled"),
    path("routes/<task:task_type>/delete/", listing.delete, name="route_delete"),
    path("aliases/", aliases.alias, name="alias"),
]
