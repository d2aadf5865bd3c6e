from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.agents.first_call import views

urlpatterns: list[URLPattern] = [
    path("first-call/<str:public_id>/<path:agent_id>/", views.first_call, name="first_call"),
]
