from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from routing_admin.console.matrix import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("matrix/", views.matrix_page, name="matrix"),
    path("matrix/cell/<int:pk>/", views.matrix_cell, name="matrix_cell"),
    path("matrix/row/<int:pk>/", views.matrix_row, name="matrix_row"),
    path("matrix/probe/<int:pk>/", views.matrix_probe, name="matrix_probe"),
    path("matrix/column/", views.matrix_column, name="matrix_column"),
    path("matrix/fill/", views.matrix_fill, name="matrix_fill"),
]
