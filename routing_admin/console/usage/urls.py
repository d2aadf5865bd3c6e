"""Addresses of usage."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.usage import budget_views, views

urlpatterns: list[URLPattern] = [
    path("usage/", views.usage, name="usage"),
    path("usage/budgets/", budget_views.budgets, name="budgets"),
    path("usage/budgets/save/", budget_views.budget_save, name="budget_save"),
    path("usage/budgets/delete/", budget_views.budget_delete, name="budget_delete"),
    path("csv/usage/", views.usage_csv, name="usage_csv"),
]
