from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.drills import views

urlpatterns: list[URLPattern] = [
    path("drill/", views.drill_banner, name="drill_banner"),
    path("drill/end/", views.drill_end, name="drill_end"),
    path("providers/<str:name>/drill/", views.drill, name="drill"),
]
