"""A certificate for one session, trusted by its fingerprint alone.

There is no name to certify and no authority to ask: the join line contains the SHA-256 of the
certificate, and a client accepts exactly that one.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import ssl
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["session_certificate"]

_VALID = dt.timedelta(days=3650)


def session_certificate() -> tuple[ssl.SSLContext, str]:
    """Make a key and a self-signed certificate that live as long as this process.

    Returns:
        The server's TLS context, and the certificate's SHA-256 in lower-case hexadecimal.
    """
    # Imported here: few sessions have TLS, and this package takes 9 MB.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "GCspy session")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + _VALID)
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    _load(context, key, certificate)
    der = certificate.public_bytes(serialization.Encoding.DER)
    return context, hashlib.sha256(der).hexdigest()


def _load(
    context: ssl.SSLContext, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> None:
    """Load both into the context, which takes them from a file only: one that nobody else can open, and that exists only briefly."""
    from cryptography.hazmat.primitives import serialization

    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
    handle, path = tempfile.mkstemp(prefix="gcspy-")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
