from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.history import audit, views

urlpatterns: list[URLPattern] = [
    path("history/", views.history, name="history"),
    path("history/compare/", views.compare, name="compare"),
    path("history/audit/", audit.audit, name="audit"),
    path("history/audit/export/<str:form>/", audit.audit_export, name="audit_export"),
    path("history/<int:number>/", views.revision, name="revision"),
    path("history/<int:number>/restore/", views.restore, name="restore"),
    path("undo/<int:number>/", views.undo, name="undo"),
]
