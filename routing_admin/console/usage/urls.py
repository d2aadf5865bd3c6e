from __future__ import annotations

from django.urls import URLPattern, path

from routing_admin.console.usage import budgets, views

urlpatterns: list[URLPattern] = [
    path("usage/", views.usage, name="usage"),
    path("usage/budgets/", budgets.budgets, name="budgets"),
    path("usage/budgets/save/", budgets.budget_save, name="budget_save"),
    path("usage/budgets/delete/", budgets.budget_delete, name="budget_delete"),
    path("csv/usage/", views.usage_csv, name="usage_csv"),
]
