"""Addresses of agents' own pages: the secret is the last part of each."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.agent_page import pages

urlpatterns: list[URLPattern] = [
    path("agent-page/<str:link>/", pages.own_page, name="own_page"),
    path("agent-page/calls/<str:pk>/<str:link>/", pages.own_call, name="own_call"),
]
