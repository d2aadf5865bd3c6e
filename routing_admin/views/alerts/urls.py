"""Addresses of alerts."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.alerts import pages

urlpatterns: list[URLPattern] = [
    path("alerts/", pages.alerts, name="alerts"),
    path("alerts/test/", pages.alert_test, name="alert_test"),
]
