"""The address of Simulate."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.simulate import pages

urlpatterns: list[URLPattern] = [
    path("simulate/", pages.simulate_page, name="simulate"),
]
