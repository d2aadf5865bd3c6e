from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.requests import send, views

urlpatterns: list[URLPattern] = [
    path("requests/", views.requests, name="requests"),
    path("newer/requests/", views.requests_newer, name="requests_newer"),
    path("words/requests/", views.requests_words, name="requests_words"),
    path("columns/requests/", views.requests_columns, name="requests_columns"),
    path("volume/requests/", views.requests_volume, name="requests_volume"),
    path("requests/<str:pk>/", views.request_detail, name="request"),
    path("artifacts/<str:pk>/send/", send.artifact_send, name="artifact_send"),
    path("artifacts/<str:pk>/describe/", send.artifact_describe, name="artifact_describe"),
]
