"""Authentication backend for sign-in with a password and for sessions."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User

from routing_admin.console.people.queries import find_user


class PeopleBackend(ModelBackend):
    """Authenticates users by name and password. The user and role of a session are read in one query."""

    def get_user(self, user_id: Any) -> User | None:
        user = find_user(user_id)
        return user if user is not None and self.user_can_authenticate(user) else None
