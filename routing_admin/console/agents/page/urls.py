from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.agents.page import views

urlpatterns: list[URLPattern] = [
    path("agent-page/<str:link>/", views.own_page, name="own_page"),
    path("agent-page/calls/<str:pk>/<str:link>/", views.own_call, name="own_call"),
]
