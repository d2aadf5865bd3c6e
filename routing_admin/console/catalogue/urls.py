from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.catalogue import views

urlpatterns: list[URLPattern] = [
    path("matrix/catalogue/", views.catalogue, name="catalogue"),
    path("matrix/catalogue/<int:pk>/", views.catalogue_edition, name="catalogue_edition"),
]
