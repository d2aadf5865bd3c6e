"""URLs of all pages, by subject."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

SUBJECTS = (
    "dashboard",
    "base",
    "people",
    "find",
    "routes",
    "simulate",
    "exchange",
    "history",
    "settings",
    "docs",
    "alerts",
    "drills",
    "catalogue",
    "requests",
    "usage",
    "providers",
    "matrix",
    "services",
    "agents",
    "artifacts",
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include(f"routing_admin.console.{subject}.urls")) for subject in SUBJECTS
]
