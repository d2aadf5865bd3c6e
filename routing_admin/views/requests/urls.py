"""Addresses of the request log, and of sending a file to a model."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.requests import pages, send

urlpatterns: list[URLPattern] = [
    path("requests/", pages.requests, name="requests"),
    path("requests/<str:pk>/", pages.request_detail, name="request"),
    path("artifacts/<str:pk>/send/", send.artifact_send, name="artifact_send"),
]
