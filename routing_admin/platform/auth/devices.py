"""Which program on which system is it, by the words of a user agent? A guess for people, and no more."""

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
"""The word in a user agent and the program it tells; the first counts, since most say that they are others, too."""

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
    """The program's name and the system's, each empty where the words tell of none."""
    program = next((name for word, name in PROGRAMS if word in user_agent), "")
    return program, next((name for word, name in SYSTEMS if word in user_agent), "")
