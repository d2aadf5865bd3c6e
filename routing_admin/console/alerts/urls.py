"""URLs of the page of alerts."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.alerts import views

urlpatterns: list[URLPattern] = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/test/", views.alert_test, name="alert_test"),
]
