from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.base import session

urlpatterns: list[URLPattern] = [
    path("theme/", session.set_theme, name="set_theme"),
    path("concepts/", session.concepts_dismiss, name="concepts_dismiss"),
]
