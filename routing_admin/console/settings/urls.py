from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.settings import views

urlpatterns: list[URLPattern] = [
    path("settings/", views.page, name="settings"),
    path("settings/language/", views.language_save, name="settings_language_save"),
    path("settings/language/remove/", views.language_remove, name="settings_language_remove"),
    path("settings/rate/", views.rate_set, name="settings_rate_set"),
    path("settings/rate/remove/", views.rate_remove, name="settings_rate_remove"),
    path("settings/demo/remove/", views.demo_remove, name="demo_remove"),
]
