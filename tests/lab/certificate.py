"""A self-signed certificate, which no client trusts."""

from __future__ import annotations

import atexit
import datetime
import functools
import shutil
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@functools.cache
def self_signed() -> tuple[str, str]:
    """Create a self-signed certificate and return the paths of the certificate and key files.

    Both are removed at exit.
    """
    folder = tempfile.mkdtemp(prefix="lab-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fault lab")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
        now + datetime.timedelta(days=1)
    )
    certificate = builder.sign(key, hashes.SHA256())
    paths = Path(folder, "certificate.pem"), Path(folder, "key.pem")
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    encoding, no_password = serialization.Encoding.PEM, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, no_password))
    return str(paths[0]), str(paths[1])
