"""Django's own admin, read-only, for superusers if ROUTING_ADMIN_DJANGO_ADMIN enables it.

Changes made there would bypass the actions, and with them validation, history, audit log and Undo. As for every page,
`routing_admin/platform/auth/permissions.py` decides who may open it.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.auth import views as auth
from django.contrib.auth.models import User
from django.db.models import Field
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _

APPS = ("routing_admin", "artifacts", "capabilities")
SECRETS = frozenset({"password", "digest", "ciphertext", "fingerprint"})
"""Fields that are never shown, even encrypted. A table whose primary key is a secret is omitted."""


class RowsAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    actions = None

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [field.name for field in self._columns()]

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        return ["__str__", *(field.name for field in self._columns() if _is_short(field))][:8]

    def _columns(self) -> list[Any]:
        fields = (field for field in self.model._meta.get_fields() if isinstance(field, Field))
        return [field for field in fields if field.name not in SECRETS and not field.auto_created]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_module_permission(self, request: HttpRequest) -> bool:
        # `RowsSite.has_permission` has already checked the user.
        return True


class RowsSite(admin.AdminSite):
    """An admin site with all tables of this application and its users. It uses the application's sign-in page."""

    site_header = site_title = _("Rows, read-only")
    index_title = _("Make changes on the pages of routing_admin")

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponseBase:  # type: ignore[override]
        # The application's own sign-in page counts failed attempts, which Django's does not.
        return redirect("login")

    def logout(self, request: HttpRequest, extra_context: Any = None) -> HttpResponseBase:  # type: ignore[override]
        return auth.LogoutView.as_view()(request)

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> HttpResponseBase:  # type: ignore[override]
        return redirect("password_change")


def _is_short(field: Any) -> bool:
    return field.get_internal_type() not in {"JSONField", "TextField", "BinaryField"}


site = RowsSite()
for _app in APPS:
    for _model in apps.get_app_config(_app).get_models():
        if _model._meta.pk.name not in SECRETS:
            site.register(_model, RowsAdmin)
site.register(User, RowsAdmin)
