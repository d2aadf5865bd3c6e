"""URL of the search page Find."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.find import views

urlpatterns: list[URLPattern] = [path("find/", views.find, name="find")]
