"""What do the pages of people need to know? Who may come in, whose link it is, in which language somebody reads."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.db.models import F
from django.utils.encoding import force_str
from django.utils.http import urlsafe_base64_decode

from routing_admin.models import LinkedIdentity, Person


def list_users() -> list[User]:
    """Everybody: those who can sign in first, administrators before editors before viewers, then by name."""
    editors = F("person__is_editor").desc(nulls_last=True)
    users = User.objects.select_related("person").prefetch_related("linked_identities")
    return list(users.order_by("-is_active", "-is_staff", editors, "username"))


def find_user(pk: int | None) -> User | None:
    """The user with that key; None when there is none, or no key as somebody has who is not signed in."""
    return None if pk is None else User.objects.select_related("person").filter(pk=pk).first()


def find_user_named(username: str) -> User | None:
    """The user of that name; None when there is none."""
    return User.objects.select_related("person").filter(username=username).first()


def find_user_of_link(uid: str, token: str) -> User | None:
    """The user whose link this is; None when it is wrong, used, expired or taken back."""
    try:
        user = User.objects.filter(pk=int(force_str(urlsafe_base64_decode(uid))), is_active=True).first()
    except (ValueError, OverflowError):
        return None
    return user if user and default_token_generator.check_token(user, token) else None


def find_language(user: User) -> str:
    """The language the user chose, empty when none was."""
    return Person.objects.filter(user=user).values_list("language", flat=True).first() or ""


def list_identities(user: User) -> list[LinkedIdentity]:
    """The accounts elsewhere that sign this user in, the oldest first."""
    return list(user.linked_identities.order_by("linked_at"))
