"""Addresses of revisions and of the audit log."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.history import audit, pages

urlpatterns: list[URLPattern] = [
    path("history/", pages.history, name="history"),
    path("history/compare/", pages.compare, name="compare"),
    path("history/audit/", audit.audit, name="audit"),
    path("history/audit/export/<str:form>/", audit.audit_export, name="audit_export"),
    path("history/<int:number>/", pages.revision, name="revision"),
    path("history/<int:number>/restore/", pages.restore, name="restore"),
]
