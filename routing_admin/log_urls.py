"""The addresses of the dashboard, of the request log, and of trying a file on a model."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from routing_admin.views.dashboard import page
from routing_admin.views.requests import pages, send

urlpatterns: list[URLPattern | URLResolver] = [
    path("", page.dashboard, name="dashboard"),
    path("requests/", pages.requests, name="requests"),
    path("requests/<str:pk>/", pages.request_detail, name="request"),
    path("artifacts/<str:pk>/send/", send.artifact_send, name="artifact_send"),
]
