"""What do the pages of users need to know? Everybody who may come in, and one of them."""

from __future__ import annotations

from django.contrib.auth.models import User


def list_users() -> list[User]:
    """Everybody: those who can sign in first, administrators before viewers, then by name."""
    return list(User.objects.order_by("-is_active", "-is_staff", "username"))


def find_user(pk: int | None) -> User | None:
    """The user with that key; None when there is none, or no key as somebody has who is not signed in."""
    return None if pk is None else User.objects.filter(pk=pk).first()
