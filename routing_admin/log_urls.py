"""The addresses of the dashboard, of the request log, and of trying a file on a model."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from routing_admin.views import dashboard, requests, sending

urlpatterns: list[URLPattern | URLResolver] = [
    path("", dashboard.dashboard, name="dashboard"),
    path("requests/", requests.requests, name="requests"),
    path("requests/<str:pk>/", requests.request_detail, name="request"),
    path("artifacts/<str:pk>/send/", sending.artifact_send, name="artifact_send"),
]
