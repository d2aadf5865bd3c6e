"""The pages of this app. What is added has an address of its own, so that no name can stand in its way."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from capabilities.views import (
    agent_links,
    agents,
    drift,
    keys,
    matrix,
    provider_add,
    provider_keys,
    providers,
    services,
    testing,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("new/provider/", provider_add.provider_new, name="provider_new"),
    path("new/service/", services.service_new, name="service_new"),
    path("new/agent/", agents.agent_new, name="agent_new"),
    path("providers/", providers.providers, name="providers"),
    path("switch/providers/", providers.providers_switch, name="providers_switch"),
    path("test/providers/", testing.providers_test, name="providers_test"),
    path("providers/<str:name>/", providers.provider, name="provider"),
    path("providers/<str:name>/models/", provider_add.provider_models, name="provider_models"),
    path("providers/<str:name>/test/", providers.provider_test, name="provider_test"),
    path("providers/<str:name>/delete/", providers.provider_delete, name="provider_delete"),
    path("providers/<str:name>/keys/add/", provider_keys.provider_key_add, name="provider_key_add"),
    path("providers/<str:name>/keys/change/", provider_keys.provider_key_change, name="provider_key_change"),
    path("providers/<str:name>/keys/remove/", provider_keys.provider_key_remove, name="provider_key_remove"),
    path("providers/<str:name>/keys/allow/", provider_keys.provider_key_origin, name="provider_key_origin"),
    path("providers/<str:name>/keys/test/", provider_keys.provider_keys_test, name="provider_keys_test"),
    path("matrix/", matrix.matrix_page, name="matrix"),
    path("matrix/cell/<int:pk>/", matrix.matrix_cell, name="matrix_cell"),
    path("matrix/row/<int:pk>/", matrix.matrix_row, name="matrix_row"),
    path("matrix/probe/<int:pk>/", matrix.matrix_probe, name="matrix_probe"),
    path("matrix/column/", matrix.matrix_column, name="matrix_column"),
    path("matrix/fill/", matrix.matrix_fill, name="matrix_fill"),
    path("services/", services.services, name="services"),
    path("services/<path:service_id>/", services.service, name="service"),
    path("forget/<path:service_id>/", services.service_forget, name="service_forget"),
    path("catalogue/<path:service_id>/", services.service_catalogue, name="service_catalogue"),
    path("probe/<path:service_id>/", services.service_probe, name="service_probe"),
    path("doubt/<path:service_id>/", drift.service_drift, name="service_drift"),
    path("nightly/<path:service_id>/", drift.service_nightly, name="service_nightly"),
    path("delete/service/<path:service_id>/", services.service_delete, name="service_delete"),
    path("agents/", agents.agents, name="agents"),
    path("agents/<path:agent_id>/", agents.agent, name="agent"),
    path("delete/agent/<path:agent_id>/", agents.agent_delete, name="agent_delete"),
    path("keys/issue/<path:agent_id>/", keys.key_issue, name="key_issue"),
    path("keys/<str:public_id>/change/<path:agent_id>/", keys.key_change, name="key_change"),
    path("keys/<str:public_id>/roll/<path:agent_id>/", keys.key_roll, name="key_roll"),
    path("keys/<str:public_id>/revoke/<path:agent_id>/", keys.key_revoke, name="key_revoke"),
    path("links/make/<path:agent_id>/", agent_links.agent_link_make, name="agent_link_make"),
    path("links/<str:public_id>/revoke/<path:agent_id>/", agent_links.agent_link_revoke, name="agent_link_revoke"),
]
