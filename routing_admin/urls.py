"""Every address of the installation, by who answers it: machines first, then the pages family by family."""

from __future__ import annotations

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from routing_admin.agents_api import assembly
from routing_admin.views import session
from routing_admin.views.dashboard.cooling import providers_try_again
from routing_admin.views.dashboard.endings import model_replace
from routing_admin.views.dashboard.page import dashboard

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("routing_admin.gateway.urls")),
    path("", include("routing_admin.server.health_checks")),
    path("api/v1/", assembly.urls),
    path("", dashboard, name="dashboard"),
    path("successor/<path:name>/", model_replace, name="model_replace"),
    path("again/providers/", providers_try_again, name="providers_try_again"),
    path("theme/", session.set_theme, name="set_theme"),
    path("concepts/", session.concepts_dismiss, name="concepts_dismiss"),
    path("undo/<int:number>/", session.undo, name="undo"),
    path("", include("routing_admin.views.people.urls")),
    path("", include("routing_admin.views.find.urls")),
    path("", include("routing_admin.views.routes.urls")),
    path("", include("routing_admin.views.simulate.urls")),
    path("", include("routing_admin.views.configuration.urls")),
    path("", include("routing_admin.views.history.urls")),
    path("", include("routing_admin.views.settings.urls")),
    path("", include("routing_admin.views.alerts.urls")),
    path("", include("routing_admin.views.drills.urls")),
    path("", include("routing_admin.views.first_call.urls")),
    path("", include("routing_admin.views.catalogue.urls")),
    path("", include("routing_admin.views.requests.urls")),
    path("", include("routing_admin.views.usage.urls")),
    path("", include("routing_admin.views.agent_page.urls")),
    path("", include("capabilities.urls")),
    path("", include("artifacts.urls")),
]

if settings.DJANGO_ADMIN:  # its package is an app only then
    from routing_admin.views import django_admin

    urlpatterns.append(path("django-admin/", django_admin.site.urls))

handler403 = "routing_admin.views.errors.forbidden"
handler500 = "routing_admin.views.errors.server_error"
