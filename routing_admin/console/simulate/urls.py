from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.simulate import views

urlpatterns: list[URLPattern] = [
    path("simulate/", views.simulate_page, name="simulate"),
]
