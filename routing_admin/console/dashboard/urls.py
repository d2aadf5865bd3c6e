from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.dashboard import views

urlpatterns: list[URLPattern] = [
    path("", views.dashboard, name="dashboard"),
    path("successor/<path:name>/", views.model_replace, name="model_replace"),
    path("again/providers/", views.providers_try_again, name="providers_try_again"),
]
