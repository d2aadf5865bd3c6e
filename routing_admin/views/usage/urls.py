"""Addresses of usage."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.usage import pages

urlpatterns: list[URLPattern] = [
    path("usage/", pages.usage, name="usage"),
    path("csv/usage/", pages.usage_csv, name="usage_csv"),
]
