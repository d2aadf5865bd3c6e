"""Addresses of the data plane, below `/v1/`."""

from __future__ import annotations

from django.urls import path

from routing_admin.gateway import chat

app_name = "gateway"
urlpatterns = [
    path("chat/completions", chat.completions, name="chat"),
]
