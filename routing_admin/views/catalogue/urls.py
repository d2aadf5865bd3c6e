"""Addresses of the catalogue and its editions."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.catalogue import pages

urlpatterns: list[URLPattern] = [
    path("matrix/catalogue/", pages.catalogue, name="catalogue"),
    path("matrix/catalogue/<int:pk>/", pages.catalogue_edition, name="catalogue_edition"),
]
