"""Django settings, which are read from the environment (see routing_admin/environment.py)."""

from __future__ import annotations

from importlib.util import find_spec
from urllib.parse import urlsplit

from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from routing_admin.core.alerts.webhook import WebhookAddressError, parse_webhook
from routing_admin.core.identity import package_settings, read_identity_rules
from routing_admin.environment import (
    PREFIX,
    artifacts_bucket,
    cors_origins,
    data_directory,
    encryption_keys,
    log_format,
    read_environment,
    redis_url,
    secret_files,
    signing_secrets,
)
from routing_admin.paths import BASE_DIR, FILES
from routing_admin.platform.databases.addresses import databases

env = read_environment()
DATA_DIR = data_directory(env)
ARTIFACTS_BUCKET = artifacts_bucket(env)
DEBUG = env.bool(PREFIX + "DEBUG", default=False)

SECRET_KEY, *SECRET_KEY_FALLBACKS = SIGNING_SECRETS = signing_secrets(env, DATA_DIR)
SECRET_FILES = secret_files(env, DATA_DIR)
ENCRYPTION_KEYS = encryption_keys(env, DATA_DIR)

HOST = env.str(PREFIX + "HOST", default="127.0.0.1")
PORT = env.int(PREFIX + "PORT", default=8000)
PUBLIC_URL = env.str(PREFIX + "PUBLIC_URL", default=f"http://{HOST}:{PORT}").rstrip("/")
_public = urlsplit(PUBLIC_URL)
HTTPS = _public.scheme == "https"
ALLOWED_HOSTS = [
    *dict.fromkeys(
        [
            _public.hostname or HOST,
            HOST,
            "localhost",
            "127.0.0.1",
            "[::1]",
            *env.list(PREFIX + "ALLOWED_HOSTS", default=[]),
        ]
    )
]
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}"]
TRUSTED_PROXIES = env.int(PREFIX + "TRUSTED_PROXIES", default=0)

ADMIN_USER = env.str(PREFIX + "ADMIN_USER", default="admin")
ADMIN_PASSWORD = env.str(PREFIX + "ADMIN_PASSWORD", default="")
ALLOWED_ORIGINS = env.list(PREFIX + "ALLOWED_ORIGINS", default=[])
CORS_ORIGINS = cors_origins(env)
METRICS_AGENTS = env.int(PREFIX + "METRICS_AGENTS", default=0)
METRICS_HOST = env.str(PREFIX + "METRICS_HOST", default="127.0.0.1")
METRICS_PORT = env.int(PREFIX + "METRICS_PORT", default=None)
METRICS_TOKEN = env.str(PREFIX + "METRICS_TOKEN", default="")
OUTGOING_PROXY = env.str(PREFIX + "OUTGOING_PROXY", default="")
MAX_UPLOAD_BYTES = env.int(PREFIX + "MAX_UPLOAD_BYTES", default=25 * 1024 * 1024)
MAX_JSON_VALUES = env.int(PREFIX + "MAX_JSON_VALUES", default=100_000)
MAX_JSON_BYTES = env.int(PREFIX + "MAX_JSON_BYTES", default=8 * 1024 * 1024)
MAX_JSON_DEPTH = env.int(PREFIX + "MAX_JSON_DEPTH", default=64)
MAX_MESSAGES = env.int(PREFIX + "MAX_MESSAGES", default=10_000)
MAX_PARTS = env.int(PREFIX + "MAX_PARTS", default=10_000)
MAX_TOOLS = env.int(PREFIX + "MAX_TOOLS", default=1_000)
MAX_MADE_AGENTS = env.int(PREFIX + "MAX_MADE_AGENTS", default=200)
KEEP_ANSWERS = env.int(PREFIX + "KEEP_ANSWERS", default=3600)
HEAD_SECONDS = env.float(PREFIX + "HEAD_SECONDS", default=10.0)
BODY_SECONDS = env.float(PREFIX + "BODY_SECONDS", default=30.0)
CONNECTIONS_PER_ADDRESS = env.int(PREFIX + "CONNECTIONS_PER_ADDRESS", default=256)
MAX_CALLS = env.int(PREFIX + "MAX_CALLS", default=512)
MAX_REQUESTS = env.int(PREFIX + "MAX_REQUESTS", default=256)
KEEP_ALIVE_SECONDS = env.float(PREFIX + "KEEP_ALIVE_SECONDS", default=20.0)
DRAIN_SECONDS = env.int(PREFIX + "DRAIN_SECONDS", default=30)
REDIS_URL = redis_url(env)
try:
    ALERT_WEBHOOK = parse_webhook(_webhook) if (_webhook := env.str(PREFIX + "ALERT_WEBHOOK", default="")) else None
except WebhookAddressError as problem:
    raise SystemExit(f"{PREFIX}ALERT_WEBHOOK names no webhook. {problem}") from None
LOG_FORMAT = log_format(env)
PUBLISH_DIR = env.str(PREFIX + "PUBLISH_DIR", default="")
DJANGO_ADMIN = env.bool(PREFIX + "DJANGO_ADMIN", default=False)
try:
    IDENTITY = read_identity_rules(env.ENVIRON)
except ValueError as problem:
    raise SystemExit(str(problem)) from None
if IDENTITY.providers and find_spec("allauth") is None:
    raise SystemExit(
        "The environment names a provider to sign in with, and the package for that is not installed. Install "
        "routing-admin[sso], or in a checkout: .venv/bin/pip install --require-hashes -r requirements-extras.txt"
    )

INSTALLED_APPS = [
    "routing_admin.apps.RoutingAdminConfig",
    "artifacts.apps.ArtifactsConfig",
    "capabilities.apps.CapabilitiesConfig",
    "django.forms",
    "django_htmx",
    "template_partials",
    "csp",
    *(["django.contrib.admin"] if DJANGO_ADMIN else []),
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "routing_admin.platform.server.url_aliases.UrlAliasesMiddleware",
    "routing_admin.platform.server.request_id.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "routing_admin.platform.server.static_files.StaticFilesMiddleware",
    "routing_admin.platform.server.compression.CompressionMiddleware",
    # SessionActivityMiddleware must precede SessionMiddleware, because it needs the key of the session after the
    # session has been saved.
    "routing_admin.platform.auth.session_activity.SessionActivityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "routing_admin.platform.server.hosts.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "routing_admin.console.base.page_responses.HtmxPagesMiddleware",
    "routing_admin.platform.auth.permissions.PermissionsMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

if IDENTITY.providers:
    INSTALLED_APPS += [
        "allauth",
        "allauth.account",
        "allauth.socialaccount",
        *(f"allauth.socialaccount.providers.{provider.kind}" for provider in IDENTITY.providers),
    ]
    MIDDLEWARE.insert(-2, "allauth.account.middleware.AccountMiddleware")
    SOCIALACCOUNT_ADAPTER = "routing_admin.console.people.identity_adapter.IdentityAdapter"
    SOCIALACCOUNT_PROVIDERS = package_settings(IDENTITY)
    SOCIALACCOUNT_REQUESTS_TIMEOUT = 10
    ACCOUNT_DEFAULT_HTTP_PROTOCOL = _public.scheme

ROOT_URLCONF = "routing_admin.urls"
SERVER_HOOKS = "routing_admin.wiring.make_server_hooks"
ASGI_APPLICATION = "routing_admin.asgi.application"
# This renderer finds our template for select fields. Django's own template renders each option with a separate
# template.
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
LOADERS = ["routing_admin.console.base.template_loader.Loader", "django.template.loaders.app_directories.Loader"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [FILES / "templates"],
        "OPTIONS": {
            "loaders": [("template_partials.loader.Loader", [("django.template.loaders.cached.Loader", LOADERS)])],
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "routing_admin.console.base.context.page",
            ],
            "builtins": ["template_partials.templatetags.partials", "routing_admin.console.base.tags.ui"],
            "libraries": {"cells": "routing_admin.console.matrix.cells"},
        },
    }
]


DATABASES = databases(env.str("DATABASE_URL", default=""), DATA_DIR)
DATABASE_ROUTERS = ["routing_admin.platform.databases.router.LogsRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["routing_admin.console.people.backend.PeopleBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = [
    "routing_admin.platform.auth.password_hashing.BoundedArgon2Hasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "dashboard"
LOGOUT_REDIRECT_URL = "login"

# Browsers accept cookies with the prefix `__Host-` only over HTTPS.
SESSION_COOKIE_NAME = "__Host-sid" if HTTPS else "sid"
SESSION_COOKIE_AGE = 8 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
CSRF_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(api|v1|healthz|readyz|metrics)(/|$)"]
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
# These checks ask for HSTS on subdomains and for preloading, which would affect other hosts of the domain.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "media-src": [SELF, "blob:"],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "routing_admin" / "locale"]
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.str(PREFIX + "TIME_ZONE", default="UTC")

STATIC_URL = "static/"
# Only the command collectstatic uses this; the server reads files from their source directories.
STATIC_ROOT = DATA_DIR / "static"
STATIC_ROOT.mkdir(exist_ok=True)
STATICFILES_DIRS = [FILES / "static"]
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "routing_admin.platform.server.static_files.HashedStorage"},
}

# Django's own limit is disabled, because the program limits request bodies itself (capabilities/json_bodies.py).
DATA_UPLOAD_MAX_MEMORY_SIZE = None
DATA_UPLOAD_MAX_NUMBER_FILES = 50
FILE_UPLOAD_HANDLERS = ["artifacts.storage.uploads.StoringUploadHandler"]
NINJA_NUM_PROXIES = TRUSTED_PROXIES
MESSAGE_STORAGE = "routing_admin.console.base.tags.toasts.ToastStorage"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "explain": {"()": "routing_admin.platform.server.logs.ExplainFilter"},
        "redact": {"()": "routing_admin.platform.server.logs.RedactFilter"},
    },
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
        "json": {"()": "routing_admin.platform.server.logs.JsonFormatter"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["explain", "redact"]}
    },
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "aiohttp": {"level": "WARNING"},
        # The connection pool logs every failed attempt to connect. Silence it, because an outage is already logged
        # once.
        "psycopg.pool": {"level": "ERROR"},
    },
}
