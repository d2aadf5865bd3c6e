from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from routing_admin.console.agents import listing, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("routing_admin.console.agents.first_call.urls")),
    path("", include("routing_admin.console.agents.page.urls")),
    path("new/agent/", views.agent_new, name="agent_new"),
    path("agents/", listing.agents, name="agents"),
    path("agents/<path:agent_id>/", views.agent, name="agent"),
    path("delete/agent/<path:agent_id>/", views.agent_delete, name="agent_delete"),
    path("keys/issue/<path:agent_id>/", views.key_issue, name="key_issue"),
    path("keys/<str:public_id>/change/<path:agent_id>/", views.key_change, name="key_change"),
    path("keys/<str:public_id>/roll/<path:agent_id>/", views.key_roll, name="key_roll"),
    path("keys/<str:public_id>/revoke/<path:agent_id>/", views.key_revoke, name="key_revoke"),
    path("links/make/<path:agent_id>/", views.agent_link_make, name="agent_link_make"),
    path("links/<str:public_id>/revoke/<path:agent_id>/", views.agent_link_revoke, name="agent_link_revoke"),
]
