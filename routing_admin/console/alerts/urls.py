from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.alerts import views

urlpatterns: list[URLPattern] = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/<int:number>/acknowledge/", views.alert_acknowledge, name="alert_acknowledge"),
    path("alerts/<int:number>/mute/", views.alert_mute, name="alert_mute"),
    path("alerts/webhook/", views.alert_webhook, name="alert_webhook"),
    path("alerts/test/", views.alert_test, name="alert_test"),
]
