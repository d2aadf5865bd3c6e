"""The addresses of the dashboard and of the request log."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from routing_admin.views import dashboard, requests

urlpatterns: list[URLPattern | URLResolver] = [
    path("", dashboard.dashboard, name="dashboard"),
    path("demo/remove/", dashboard.demo_remove, name="demo_remove"),
    path("requests/", requests.requests, name="requests"),
    path("requests/<str:pk>/", requests.request_detail, name="request"),
]
