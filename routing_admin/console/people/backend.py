"""Django authentication backend for signing in with a password, and for loading the user of a session."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User

from routing_admin.console.people.queries import find_user


class PeopleBackend(ModelBackend):
    """Authenticates users by name and password. A session's user and the user's role are read in one query."""

    def get_user(self, user_id: Any) -> User | None:
        user = find_user(user_id)
        return user if user is not None and self.user_can_authenticate(user) else None
