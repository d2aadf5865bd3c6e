"""Whom a session belongs to: read in one query with what tells the role."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User

from routing_admin.console.people.queries import find_user


class PeopleBackend(ModelBackend):
    """Signing in with name and password; who is signed in comes with what we keep of the person."""

    def get_user(self, user_id: Any) -> User | None:
        """The user of a session; None for one who is gone or deactivated."""
        user = find_user(user_id)
        return user if user is not None and self.user_can_authenticate(user) else None
