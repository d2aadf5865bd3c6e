"""The address of the panel that waits for a key's first call."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.first_call import pages

urlpatterns: list[URLPattern] = [
    path("first-call/<str:public_id>/<path:agent_id>/", pages.first_call, name="first_call"),
]
