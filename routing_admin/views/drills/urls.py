"""Addresses of fire drills."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.drills import pages

urlpatterns: list[URLPattern] = [
    path("drill/", pages.drill_banner, name="drill_banner"),
    path("drill/end/", pages.drill_end, name="drill_end"),
    path("providers/<str:name>/drill/", pages.drill, name="drill"),
]
