"""Addresses of usage."""

from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.views.usage import budgets, pages

urlpatterns: list[URLPattern] = [
    path("usage/", pages.usage, name="usage"),
    path("usage/budgets/", budgets.budgets, name="budgets"),
    path("usage/budgets/save/", budgets.budget_save, name="budget_save"),
    path("usage/budgets/delete/", budgets.budget_delete, name="budget_delete"),
    path("csv/usage/", pages.usage_csv, name="usage_csv"),
]
