"""The product's settings, with a data directory that is removed at the end of the test run."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

SHARED_MEMORY, ROOM = Path("/dev/shm"), 6 * 2**30
if "TMPDIR" not in os.environ and SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > ROOM:
    # The tests write to databases and files tens of thousands of times. A disk would make each write wait, whereas
    # memory does not.
    os.environ["TMPDIR"] = tempfile.tempdir = str(SHARED_MEMORY)

DIRECTORY = tempfile.mkdtemp(prefix="routing-admin-test-")
atexit.register(shutil.rmtree, DIRECTORY, ignore_errors=True)
OURS = [name for name in os.environ if name.startswith(("ROUTING_ADMIN_", "LLM_"))]
for name in [*OURS, "DATABASE_URL", "REDIS_URL"]:
    os.environ.pop(name, None)
if "TESTS_DATABASE_URL" in os.environ:  # Another database engine was chosen by `python -m tests.engines`.
    os.environ["DATABASE_URL"] = os.environ["TESTS_DATABASE_URL"]
os.environ["ROUTING_ADMIN_DATA_DIR"] = DIRECTORY
os.environ["ROUTING_ADMIN_ADMIN_PASSWORD"] = "correct horse battery staple"
os.environ["ROUTING_ADMIN_ALLOWED_ORIGINS"] = "*"

from routing_admin.settings import *  # noqa: E402, F403

STORAGES["staticfiles"] = {  # noqa: F405  # the server of these tests knows no hashed names
    "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if "TESTS_DATABASE_URL" in os.environ:
    for database in DATABASES.values():  # noqa: F405
        database["ENGINE"] = "tests.engines.postgresql"
