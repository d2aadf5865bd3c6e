"""Addresses of the data plane; what misses them by little is told where it belongs."""

from __future__ import annotations

from django.urls import path

from routing_admin.gateway import chat, files, listing
from routing_admin.gateway.strays import BELOW_V1, ELSEWHERE, REST

app_name = "gateway"
urlpatterns = [
    path("v1/chat/completions", chat.completions, name="chat"),
    path("v1/files", files.files, name="files"),
    path("v1/files/<str:ref>", files.file, name="file"),
    path("v1/files/<str:ref>/content", files.content, name="file_content"),
    path("v1/models", listing.models, name="models"),
    *BELOW_V1,
    path("v1/models/<path:name>", listing.model, name="model"),
    REST,
    *ELSEWHERE,
]
