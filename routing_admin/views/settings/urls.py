"""Addresses of the settings page and its forms."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.settings import pages, rates

urlpatterns: list[URLPattern] = [
    path("settings/", pages.page, name="settings"),
    path("settings/content-policy/", pages.content_policy, name="settings_content_policy"),
    path("settings/default-language/", pages.default_language, name="settings_default_language"),
    path("settings/language/", pages.language_save, name="settings_language_save"),
    path("settings/language/remove/", pages.language_remove, name="settings_language_remove"),
    path("settings/rate/", rates.rate_set, name="settings_rate_set"),
    path("settings/rate/remove/", rates.rate_remove, name="settings_rate_remove"),
    path("settings/retention/", pages.retention, name="settings_retention"),
    path("settings/bodies/", pages.bodies, name="settings_bodies"),
    path("settings/demo/remove/", pages.demo_remove, name="demo_remove"),
]
