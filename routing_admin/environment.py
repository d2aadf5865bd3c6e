"""Read settings from the environment: all `ROUTING_ADMIN_…` variables, with default values and meanings.

The settings page and the table in the README are generated from `SETTINGS`.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from cryptography.fernet import Fernet
from django.utils.translation import gettext_noop as _

from artifacts.core.bucket import Bucket, BucketAddressError, parse_bucket
from capabilities.signing import split_secrets
from routing_admin.paths import default_data_directory, env_file

PREFIX = "ROUTING_ADMIN_"
REDIS_SCHEMES = ("redis", "rediss")
HOST_NAME = re.compile(r"[a-z0-9._:-]+")
"""Matches a host name or IP address in lower case."""

LOG_FORMATS = ("line", "json")


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: str
    meaning: str
    secret: bool = False


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "ROUTING_ADMIN_DATA_DIR",
        "var/, or the user's data folder",
        _("Where databases, artifacts and generated secrets are kept."),
    ),
    Setting("ROUTING_ADMIN_HOST", "127.0.0.1", _("Address the server listens on.")),
    Setting("ROUTING_ADMIN_PORT", "8000", _("Port the server listens on.")),
    Setting(
        "ROUTING_ADMIN_PUBLIC_URL",
        "http://HOST:PORT",
        _("The address people and agents use; https turns on secure cookies, HSTS and the redirect."),
    ),
    Setting("ROUTING_ADMIN_ALLOWED_HOSTS", "", _("Additional allowed host names, comma separated.")),
    Setting(
        "ROUTING_ADMIN_TRUSTED_PROXIES",
        "0",
        _("Number of trusted proxies in front, for the client's address and https."),
    ),
    Setting("ROUTING_ADMIN_TIME_ZONE", "UTC", _("Time zone of the pages.")),
    Setting("ROUTING_ADMIN_ADMIN_USER", "admin", _("Name of the first administrator.")),
    Setting(
        "ROUTING_ADMIN_ADMIN_PASSWORD",
        "generated",
        _("The first administrator's password; printed once when generated."),
        secret=True,
    ),
    Setting(
        "ROUTING_ADMIN_SECRET_KEY",
        "generated",
        _("Secrets that sign sessions and agent keys, newest first, comma separated."),
        secret=True,
    ),
    Setting(
        "ROUTING_ADMIN_KEYS",
        "generated",
        _("Keys that encrypt stored provider keys, newest first, comma separated."),
        secret=True,
    ),
    Setting(
        "ROUTING_ADMIN_ALLOWED_ORIGINS",
        "",
        _("Private, loopback or plain-http provider origins that are allowed, comma separated; * for all."),
    ),
    Setting(
        "ROUTING_ADMIN_CORS_ORIGINS",
        "",
        _("Origins whose pages may call the agents' APIs from a browser, comma separated; * for all."),
    ),
    Setting("ROUTING_ADMIN_OUTGOING_PROXY", "", _("Proxy for calls to providers (http or https URL).")),
    Setting("ROUTING_ADMIN_MAX_UPLOAD_BYTES", "26214400", _("Largest artifact in bytes (25 MiB).")),
    Setting(
        "ROUTING_ADMIN_MAX_JSON_VALUES",
        "100000",
        _("JSON values in one request: each string, list and object counts, and every four numbers."),
    ),
    Setting(
        "ROUTING_ADMIN_MAX_JSON_BYTES",
        "8388608",
        _("Bytes of JSON in one request (8 MiB); files in base64 and the texts of artifacts do not count."),
    ),
    Setting("ROUTING_ADMIN_MAX_JSON_DEPTH", "64", _("Levels that the JSON of a request may nest.")),
    Setting("ROUTING_ADMIN_MAX_MESSAGES", "10000", _("Messages in one call of a model.")),
    Setting(
        "ROUTING_ADMIN_MAX_PARTS",
        "10000",
        _("Content parts and tool calls in one call of a model, of all messages together."),
    ),
    Setting("ROUTING_ADMIN_MAX_TOOLS", "1000", _("Tools in one call of a model.")),
    Setting("ROUTING_ADMIN_MAX_MADE_AGENTS", "200", _("Living agents that one agent may create at run time.")),
    Setting(
        "ROUTING_ADMIN_KEEP_ANSWERS",
        "3600",
        _("Seconds that calls of /v1/responses are kept for item_reference and previous_response_id; 0 keeps none."),
    ),
    Setting("ROUTING_ADMIN_HEAD_SECONDS", "10", _("Seconds allowed for receiving a request's headers.")),
    Setting(
        "ROUTING_ADMIN_BODY_SECONDS",
        "30",
        _("Seconds allowed for receiving a body; longer only at 4 KiB a second or more."),
    ),
    Setting(
        "ROUTING_ADMIN_CONNECTIONS_PER_ADDRESS",
        "256",
        _("Open connections allowed per address and process; behind proxies, concurrent requests."),
    ),
    Setting(
        "ROUTING_ADMIN_MAX_CALLS",
        "512",
        _("Concurrent chat calls per process; a quarter more can wait, the rest get 503."),
    ),
    Setting(
        "ROUTING_ADMIN_MAX_REQUESTS",
        "256",
        _("Concurrent other requests per process; a quarter more can wait, the rest get 503."),
    ),
    Setting(
        "ROUTING_ADMIN_KEEP_ALIVE_SECONDS",
        "20",
        _("Seconds until a stream without content begins with keep-alive comments, 0 for never; a route can differ."),
    ),
    Setting("ROUTING_ADMIN_DRAIN_SECONDS", "30", _("Seconds for requests in flight to finish after SIGTERM.")),
    Setting(
        "ROUTING_ADMIN_PUBLISH_DIR",
        "",
        _("Directory where both JSON files are kept those of the newest revision."),
    ),
    Setting(
        "ROUTING_ADMIN_METRICS_PORT",
        "",
        _("Port that serves /metrics and nothing else, so that no proxy hides it."),
    ),
    Setting("ROUTING_ADMIN_METRICS_HOST", "127.0.0.1", _("Address of this port.")),
    Setting("ROUTING_ADMIN_METRICS_AGENTS", "0", _("How many agents have their own series in /metrics.")),
    Setting(
        "ROUTING_ADMIN_METRICS_TOKEN",
        "",
        _("Opens /metrics to other machines (Authorization: Bearer). Without it, only this machine can read it."),
        secret=True,
    ),
    Setting(
        "ROUTING_ADMIN_ALERT_WEBHOOK",
        "",
        _(
            "Webhook that alerts are sent to: https://host/path. Its host shows whether it is WeCom, DingTalk, "
            "Feishu or Slack. After a #: shape=, secret= (signs messages) and lang=, joined by &."
        ),
        secret=True,
    ),
    Setting("ROUTING_ADMIN_OIDC_URL", "", _("Address of an OpenID Connect provider for signing in.")),
    Setting("ROUTING_ADMIN_OIDC_NAME", "single sign-on", _("Name on its sign-in button.")),
    Setting(
        "ROUTING_ADMIN_{PROVIDER}_CLIENT_ID",
        "",
        _("Client id of this installation at OIDC, FEISHU, DINGTALK or WEIXIN; turns on sign-in with it."),
    ),
    Setting("ROUTING_ADMIN_{PROVIDER}_CLIENT_SECRET", "", _("Its client secret there."), secret=True),
    Setting(
        "ROUTING_ADMIN_NEWCOMERS",
        "none",
        _("Role of people who sign in this way without an invitation: none, viewer or editor."),
    ),
    Setting(
        "ROUTING_ADMIN_NEWCOMER_DOMAINS",
        "",
        _("E-mail domains that new people must have verified, comma separated; empty for any."),
    ),
    Setting("ROUTING_ADMIN_LOG_FORMAT", "line", _("Lines of the server's log: line for people, json for machines.")),
    Setting("ROUTING_ADMIN_DEBUG", "off", _("Django's debug pages; never in production.")),
    Setting(
        "ROUTING_ADMIN_DJANGO_ADMIN", "off", _("Django's own admin at /django-admin/, where superusers can view rows.")
    ),
    Setting(
        "DATABASE_URL",
        "SQLite in the data directory",
        _(
            "Another database: postgres://user:password@host:5432/name, PostgreSQL 15 or newer; or another SQLite "
            "file, sqlite:////path, with the request log beside it."
        ),
        secret=True,
    ),
    Setting(
        "ROUTING_ADMIN_ARTIFACTS_URL",
        "files in the data directory",
        _(
            "A bucket for artifacts: s3://bucket/prefix?endpoint_url=https://host (also region, style=path or virtual, "
            "allow_http=true). Its credentials are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and so on."
        ),
    ),
    Setting(
        "REDIS_URL",
        "",
        _("Redis or Valkey, for sharing cooldowns and changes between processes at once: redis://:password@host:port."),
        secret=True,
    ),
    Setting("LLM_ROUTING_CONFIG", "", _("llm-routing.json imported at the first start.")),
    Setting("LLM_SERVICES_CONFIG", "", _("llmservices.json imported at the first start.")),
    Setting("LLM_PROVIDER_{NAME}_API_KEY", "", _("Overrides that provider's key."), secret=True),
    Setting(
        "LLM_PROVIDER",
        "openai",
        _("Name of the single provider created when nothing is configured and LLM_API_KEY is set."),
    ),
    Setting("LLM_API_KEY", "", _("Its key."), secret=True),
    Setting("LLM_ENDPOINT", "OpenAI's chat URL", _("Its endpoint.")),
    Setting("LLM_MODEL", "gpt-4", _("Its model.")),
)


class Environment(environ.Env):  # type: ignore[misc]  # the library has no types
    """Reader of environment variables; it exits with a one-line message if a number is not valid."""

    def get_value(self, var: Any, cast: Any = None, default: Any = environ.Env.NOTSET, **options: Any) -> Any:
        try:
            return super().get_value(var, cast, default, **options)
        except ValueError:
            kind = "a whole number" if cast is int else "a number"
            raise SystemExit(f"{var}: {os.environ.get(str(var))!r} is not {kind}.") from None


def read_environment() -> environ.Env:
    env = Environment()
    # Variables that are set in the environment override those in the file.
    env.read_env(str(env_file(_find_data_directory(env))), overwrite=False)
    return env


def _find_data_directory(env: environ.Env) -> Path:
    return Path(env.str(PREFIX + "DATA_DIR", default=str(default_data_directory()))).expanduser().resolve()


def data_directory(env: environ.Env) -> Path:
    path = _find_data_directory(env)
    # Only the owner may read the directory, because it contains databases and secrets.
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def database_files(url: str, data_dir: Path) -> tuple[Path, Path]:
    """Return the SQLite files of the configuration and of the request log.

    They are named by DATABASE_URL or are in the data directory. For any other database, raise `SystemExit` with a
    one-line message instead of showing Django's traceback.
    """
    if not url:
        return data_dir / "routing_admin.sqlite3", data_dir / "logs.sqlite3"
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite" or not rest.startswith("/") or rest == "/":
        raise SystemExit(
            f"DATABASE_URL names an engine that is not served ({scheme if '://' in url else 'none'}). Leave it unset "
            "for SQLite in the data directory, or write postgres://user:password@host/name or "
            "sqlite:////path/to/file.sqlite3."
        )
    path = Path(rest[1:])
    return path, path.with_name(f"{path.stem}-logs{path.suffix}")


def artifacts_bucket(env: environ.Env) -> Bucket | None:
    """Return the bucket in which artifacts are stored, or None if they are stored in the data directory.

    Raise `SystemExit` with a one-line message if the URL is not valid. The message does not repeat the URL, which may
    contain a secret.
    """
    name = PREFIX + "ARTIFACTS_URL"
    url = env.str(name, default="")
    try:
        return parse_bucket(url, os.environ) if url else None
    except BucketAddressError as problem:
        raise SystemExit(f"{name} names no bucket. {problem}") from None


def redis_url(env: environ.Env) -> str:
    """Return the URL of Redis, or "" if Redis is not configured.

    Raise `SystemExit` with a one-line message if the URL is not valid. The message does not repeat the URL, which may
    contain a password.
    """
    url: str = env.str("REDIS_URL", default="").strip()
    if not url:
        return ""
    if not _leads_to_redis(url):
        raise SystemExit(
            "REDIS_URL is no address of Redis. Write redis://host:6379, rediss://host:6379 for TLS, or "
            "unix:///path/to/redis.sock; a user and a password stand before the host: redis://user:password@host:6379."
        )
    return url


def _leads_to_redis(url: str) -> bool:
    try:
        parts = urlsplit(url)
        if parts.scheme == "unix":
            return bool(parts.path.strip("/"))
        database = parts.path.strip("/")
        names_server = parts.scheme in REDIS_SCHEMES and bool(parts.hostname) and parts.port != 0
        return names_server and (not database or database.isdigit())
    except ValueError:
        return False


def keep_secret(path: Path, make: str) -> str:
    """Return the secret in a file. The file is created on first use and never overwritten."""
    if not path.exists():
        # Creating a hard link is atomic and fails if the file exists. Processes that start at the same time therefore
        # use the same secret.
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(make)
        try:
            os.link(part, path)
        except FileExistsError:
            pass
        except OSError:  # The file system does not support hard links.
            part.rename(path)
        part.unlink(missing_ok=True)
    return path.read_text().strip()


def cors_origins(env: environ.Env) -> tuple[str, ...]:
    """Return the origins whose pages may call the agents' APIs; a single `*` allows all origins.

    Raise `SystemExit` with a one-line message if an origin is not valid or not written as browsers send it.
    """
    name = PREFIX + "CORS_ORIGINS"
    origins = tuple(value for part in env.str(name, default="").split(",") if (value := part.strip()))
    # Reject an origin that browsers write differently, because it would never match.
    for entry in origins if origins != ("*",) else ():
        origin = browser_origin(entry)
        if origin is None:
            hint = "* must be the only value" if entry == "*" else "an origin is scheme://host or scheme://host:port"
            raise SystemExit(f"{name}: {entry!r} is no origin: {hint}.")
        if origin != entry:
            raise SystemExit(f"{name}: browsers write {entry!r} as {origin!r}. Write it so, too.")
    return origins


def browser_origin(text: str) -> str | None:
    """Return an origin as browsers send it: in lower case, without path or default port; None if it is not valid."""
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError:
        return None
    if not HOST_NAME.fullmatch(host) or parts.username is not None or parts.path not in ("", "/"):
        return None
    if not parts.scheme or parts.query or parts.fragment:
        return None
    named = f"[{host}]" if ":" in host else host
    default_port = {"https": 443, "http": 80}.get(parts.scheme)
    return f"{parts.scheme}://{named}" + (f":{port}" if port and port != default_port else "")


def log_format(env: environ.Env) -> str:
    name = PREFIX + "LOG_FORMAT"
    value = env.str(name, default="") or LOG_FORMATS[0]
    if value not in LOG_FORMATS:
        raise SystemExit(f"{name}: {value!r} is none of {', '.join(LOG_FORMATS)}.")
    return value


def secret_files(env: environ.Env, data_dir: Path) -> dict[str, Path]:
    """Return the files with secrets in the data directory, by name.

    Secrets that are set in the environment have no file.
    """
    names = {"secret_key": PREFIX + "SECRET_KEY", "keys": PREFIX + "KEYS"}
    return {name: data_dir / name for name, setting in names.items() if not env.str(setting, default="")}


def signing_secrets(env: environ.Env, data_dir: Path) -> list[str]:
    configured = env.str(PREFIX + "SECRET_KEY", default="")
    return split_secrets(configured or keep_secret(data_dir / "secret_key", secrets.token_urlsafe(50)))


def encryption_keys(env: environ.Env, data_dir: Path) -> list[str]:
    configured = [key for key in env.list(PREFIX + "KEYS", default=[]) if key]
    return configured or keep_secret(data_dir / "keys", Fernet.generate_key().decode()).split(",")
