"""Address of Find."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.find import pages

urlpatterns: list[URLPattern] = [path("find/", pages.find, name="find")]
