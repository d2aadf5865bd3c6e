"""`ROUTING_ADMIN_DJANGO_ADMIN` enables Django's own admin: read-only, and only for superusers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.apps import apps

from tests.gateway.serving import bootstrap, manage, server_environment
from tests.lab import Lab

VISIT = """
import json, logging
from django.conf import settings
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from capabilities.models import AgentKey
logging.disable()
call_command("migrate", verbosity=0)
settings.ALLOWED_HOSTS.append("testserver")
stranger, administrator, root = Client(), Client(), Client()
administrator.force_login(User.objects.create_user("ada", is_staff=True))
root.force_login(User.objects.get(username="admin"))
from routing_admin.console.base.django_admin import site
lists = [f"/django-admin/{model._meta.app_label}/{model._meta.model_name}/" for model in site._registry]
found = [(path, row) for path, model in zip(lists, site._registry) for row in model.objects.all()[:1]]
rows = [f"{path}{quote(row.pk)}/change/" for path, row in found]
pages = ["/django-admin/", *lists, *rows]
shown = [root.get(page) for page in pages]
secrets = [User.objects.get(username="admin").password, AgentKey.objects.get().digest]
print(json.dumps({
    "pages": len(pages),
    "statuses": sorted({page.status_code for page in shown}),
    "secrets": [page.request["PATH_INFO"] for page in shown for secret in secrets if secret in page.content.decode()],
    "stranger": [stranger.get("/django-admin/").status_code, stranger.get("/django-admin/").headers["location"]],
    "administrator": sorted({administrator.get(page).status_code for page in pages}),
    "writes": sorted({root.post(page).status_code for page in [*pages, *(f"{path}add/" for path in lists)]}),
    "forms": sorted({root.get(f"{path}add/").status_code for path in lists}),
    "out": [root.post("/django-admin/logout/").status_code, root.get("/django-admin/").status_code],
}))
"""


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Lab() as lab:
        directory = tmp_path_factory.mktemp("admin")
        environment = server_environment(directory, lab)
        bootstrap(environment, directory)
        environment["ROUTING_ADMIN_DJANGO_ADMIN"] = "1"
        return json.loads(manage(environment, "shell", "--no-imports", "-c", VISIT).splitlines()[-1])


def test_superuser_can_open_every_table(visited: Any) -> None:
    assert visited["pages"] > 20
    assert visited["statuses"] == [200]


def test_pages_show_no_password_hash_and_no_key_digest(visited: Any) -> None:
    assert visited["secrets"] == []


def test_django_admin_is_read_only(visited: Any) -> None:
    assert visited["writes"] == [405]
    assert visited["forms"] == [403]


def test_only_superusers_can_open_django_admin(visited: Any) -> None:
    assert visited["stranger"] == [302, "/login/?next=/django-admin/"]
    assert visited["administrator"] == [403]
    assert visited["out"] == [302, 302]


def test_django_admin_is_not_installed_by_default() -> None:
    assert not apps.is_installed("django.contrib.admin")
