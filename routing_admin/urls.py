"""URLs of the installation: the APIs first, then the pages."""

from __future__ import annotations

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from routing_admin.console import api

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("routing_admin.gateway.urls")),
    path("", include("routing_admin.platform.server.health_checks")),
    path("api/v1/", api.urls),
    path("", include("routing_admin.console.urls")),
]

if settings.DJANGO_ADMIN:  # Django's admin package is in INSTALLED_APPS only with this setting.
    from routing_admin.console.base import django_admin

    urlpatterns.append(path("django-admin/", django_admin.site.urls))

handler403 = "routing_admin.console.base.errors.forbidden"
handler500 = "routing_admin.console.base.errors.server_error"
