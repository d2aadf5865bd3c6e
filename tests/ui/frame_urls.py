"""A small site without any of the product's pages.

It shows the parts of the frame (the layout that all pages share).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from routing_admin.console.base.tags.drawing import Bar, Track

TRACKS = (
    Track("qwen-vl-max", (Bar(0, 210, "warn"), Bar(410, 600, "warn"), Bar(1020, 1240, "warn"))),
    Track("gpt-4o", (Bar(1260, 1600, "warn"), Bar(1720, 2030, "warn"), Bar(2640, 2970, "warn"))),
    Track("deepseek-chat", (Bar(2990, 3800, "ok", early=True), Bar(3800, 8420, "ok"))),
)
PAYLOAD = {"model": "deepseek-chat", "messages": [{"role": "user", "content": "你好"}], "data": "<1,234 bytes>"}


class ServiceForm(forms.Form):
    """A form with one control of each kind."""

    url = forms.URLField(label="Base URL", assume_scheme="https")
    protocol = forms.ChoiceField(choices=[("openai", "openai"), ("anthropic", "anthropic")])
    note = forms.CharField(widget=forms.Textarea, required=False, help_text="Shown to people only.")
    enabled = forms.BooleanField(label="Enabled", required=False, initial=True)


def frame(request: HttpRequest) -> dict[str, Any]:
    names = [("dashboard", "Dashboard", "home", "d"), ("requests", "Requests", "list", "r")]
    main = [
        {"label": label, "url": f"/{name}/", "icon": icon, "key": key, "quick": True, "current": name in request.path}
        for name, label, icon, key in names
    ]
    routing = [{"label": "Task routes", "url": "/routes/", "icon": "route", "count": 6, "key": "t"}]
    return {
        "nav": [{"label": "", "items": main}, {"label": "Routing", "items": routing}],
        "theme": request.COOKIES.get("theme", "auto"),
        "can_edit": True,
    }


def gallery(request: HttpRequest) -> HttpResponse:
    form = ServiceForm({"url": "api.deep seek", "protocol": "openai", "enabled": "on"})
    return render(
        request,
        "gallery.html",
        frame(request)
        | {
            "form": form,
            "tracks": TRACKS,
            "payload": PAYLOAD,
            "values": [3, 5, 4, 8, 7, 12, 10],
            "outcomes": {"native": 4, "converted": 2, "described": 6},
            "attempts": [
                {"name": "qwen", "code": 429, "tone": "warn"},
                {"name": "openai", "code": 503, "tone": "warn"},
                {"name": "deepseek", "code": 200, "tone": "ok"},
            ],
            "capabilities": ["text", "vision", "audio", "video", "file", "structured_output", "tool_calling", "smell"],
            "statuses": ["ok", "slow", "down", "cooling", "native", "converted", "described", "refused", "primary"],
            "then": datetime(2026, 11, 20, 14, 5, tzinfo=UTC),
            "now": datetime(2026, 11, 20, 14, 8, tzinfo=UTC),
            "limit": 25 * 1024 * 1024,
        },
    )


def other_page(request: HttpRequest) -> HttpResponse:
    return render(request, "other.html", frame(request))


def empty_response(request: HttpRequest) -> HttpResponse:
    return HttpResponse("")


def flash(request: HttpRequest) -> HttpResponse:
    messages.success(request, "3 个工件已删除", extra_tags="undo:41")
    return HttpResponse("done") if request.headers.get("HX-Request") else redirect("/requests/")


def undo(request: HttpRequest, revision: int) -> HttpResponse:
    messages.info(request, f"Back to revision {revision - 1}")
    return redirect(request.POST["next"])


def upload(request: HttpRequest) -> HttpResponse:
    file = request.FILES["file"]
    if file.name.endswith(".exe"):
        return JsonResponse({"error": "refused", "message": "No programs here"}, status=422)
    return JsonResponse({"url": f"/requests/?{file.name}={file.size}"}, status=201)


def refuse(request: HttpRequest) -> HttpResponse:
    return HttpResponse(_("no"), status=int(request.GET["status"]))


def echo(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.GET.get("q", ""))


def fail(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("on purpose")


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    answer = redirect(request.POST.get("next", "/"))
    answer.set_cookie("theme", request.POST["theme"])
    return answer


ANY_PAGE = "simulate"
"""The name of a URL that the permission table allows every signed-in user to open and submit."""

urlpatterns = [
    path("login/", LoginView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("language/", set_language, name="set_language"),
    path("theme/", set_theme, name="set_theme"),
    path("dashboard/", gallery, name="dashboard"),
    path("requests/", other_page, name="requests"),
    path("routes/", other_page, name="routes"),
    path("find/", empty_response, name="find"),
    path("drill/", empty_response, name="drill_banner"),
    path("flash/", flash, name=ANY_PAGE),
    path("undo/<int:revision>/", undo, name="undo"),
    path("upload/", upload, name=ANY_PAGE),
    path("refuse/", refuse, name=ANY_PAGE),
    path("echo/", echo, name=ANY_PAGE),
    path("fail/", fail, name=ANY_PAGE),
]
