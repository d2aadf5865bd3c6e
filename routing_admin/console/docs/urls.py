from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.docs import views

urlpatterns: list[URLPattern] = [
    path("docs/", views.document, name="documents"),
    path("docs/<path:name>/", views.document, name="document"),
]
