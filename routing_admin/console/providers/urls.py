from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from routing_admin.console.providers import adding, key_views, listing, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("new/provider/", adding.provider_new, name="provider_new"),
    path("providers/", listing.providers, name="providers"),
    path("switch/providers/", listing.providers_switch, name="providers_switch"),
    path("test/providers/", views.providers_test, name="providers_test"),
    path("providers/<str:name>/", views.provider, name="provider"),
    path("providers/<str:name>/models/", adding.provider_models, name="provider_models"),
    path("providers/<str:name>/test/", views.provider_test, name="provider_test"),
    path("providers/<str:name>/delete/", views.provider_delete, name="provider_delete"),
    path("providers/<str:name>/keys/add/", key_views.provider_key_add, name="provider_key_add"),
    path("providers/<str:name>/keys/change/", key_views.provider_key_change, name="provider_key_change"),
    path("providers/<str:name>/keys/remove/", key_views.provider_key_remove, name="provider_key_remove"),
    path("providers/<str:name>/keys/allow/", key_views.provider_key_origin, name="provider_key_origin"),
    path("providers/<str:name>/keys/test/", key_views.provider_keys_test, name="provider_keys_test"),
]
