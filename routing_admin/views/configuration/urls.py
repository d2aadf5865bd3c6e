"""Addresses of export and import."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.configuration import pages

urlpatterns: list[URLPattern] = [
    path("config/", pages.config, name="config"),
    path("config/import/", pages.config_import, name="config_import"),
    path("config/export/<str:name>/", pages.config_export, name="config_export"),
]
