from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.exchange import views

urlpatterns: list[URLPattern] = [
    path("config/", views.config, name="config"),
    path("config/import/", views.config_import, name="config_import"),
    path("config/export/<str:name>/", views.config_export, name="config_export"),
]
