from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.find import options, views

urlpatterns: list[URLPattern] = [
    path("find/", views.find, name="find"),
    path("options/<str:field>/", options.options, name="options"),
    path("options/<str:field>/chosen/", options.chosen, name="options_chosen"),
]
