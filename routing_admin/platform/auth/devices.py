"""Guess program and operating system from a user agent, for display."""

from __future__ import annotations

PROGRAMS = (
    ("MicroMessenger", "WeChat"),
    ("DingTalk", "DingTalk"),
    ("Lark", "Feishu"),
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("HeadlessChrome", "Chrome"),
    ("Chrome", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari", "Safari"),
    ("curl", "curl"),
    ("python", "Python"),
)
"""Words in user agents and the program they indicate; the first match counts, since most also name others."""

SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("HarmonyOS", "HarmonyOS"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def program_and_system(user_agent: str) -> tuple[str, str]:
    program = next((name for product, name in PROGRAMS if product in user_agent), "")
    return program, next((name for product, name in SYSTEMS if product in user_agent), "")
