"""URLs for tests: a page and an API call that the permission table lacks, and a page whose view accepts every
method.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path
from django.views.decorators.csrf import csrf_exempt

from routing_admin.urls import urlpatterns as listed


@csrf_exempt
def reached(request: HttpRequest) -> HttpResponse:
    return HttpResponse("reached")


urlpatterns: list[URLPattern | URLResolver] = [
    path("", reached, name="dashboard"),
    path("unlisted/", reached, name="unlisted"),
    path("", include(([path("v1/unlisted", reached, name="unlisted")], "gateway"))),
    *listed,
]
