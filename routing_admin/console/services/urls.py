from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from routing_admin.console.services import listing, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("new/service/", views.service_new, name="service_new"),
    path("services/", listing.services, name="services"),
    path("services/<path:service_id>/", views.service, name="service"),
    path("forget/<path:service_id>/", views.service_forget, name="service_forget"),
    path("catalogue/<path:service_id>/", views.service_catalogue, name="service_catalogue"),
    path("probe/<path:service_id>/", views.service_probe, name="service_probe"),
    path("doubt/<path:service_id>/", views.service_drift, name="service_drift"),
    path("nightly/<path:service_id>/", views.service_nightly, name="service_nightly"),
    path("delete/service/<path:service_id>/", views.service_delete, name="service_delete"),
]
