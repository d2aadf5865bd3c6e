from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from routing_admin.console.artifacts import comparing, detail, listing

urlpatterns: list[URLPattern | URLResolver] = [
    path("artifacts/", listing.artifacts, name="artifacts"),
    path("artifacts/upload/", listing.artifact_upload, name="artifact_upload"),
    path("artifacts/delete/", listing.artifacts_delete, name="artifacts_delete"),
    path("artifacts/restore/", listing.artifacts_restore, name="artifacts_restore"),
    path("artifacts/<str:pk>/", detail.artifact, name="artifact"),
    path("artifacts/<str:pk>/compare/", comparing.artifact_compare, name="artifact_compare"),
    path("artifacts/<str:pk>/correct/", detail.artifact_correct, name="artifact_correct"),
    path("artifacts/<str:pk>/raw/", detail.artifact_raw, name="artifact_raw"),
    path("artifacts/<str:pk>/thumbnail/", detail.artifact_thumbnail, name="artifact_thumbnail"),
]
