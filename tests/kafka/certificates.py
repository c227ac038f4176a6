"""Certificates of an authority that was made for the tests, as PEM files: by `openssl`, in a moment."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
PASSPHRASE = "not to be asked for"


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, and one file with both, as a broker wants them."""

    certificate: Path
    key: Path
    both: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs, for a few days."""

    folder: Path
    name: str

    @classmethod
    def new(cls, folder: Path, name: str) -> Authority:
        made = cls(folder, name)
        _openssl("req", "-x509", *KEY, "-subj", f"/CN={name}", "-days", "9", *made._files("-keyout", "-out"))
        return made

    @property
    def certificate(self) -> Path:
        return self.folder / f"{self.name}.pem"

    def issue(self, name: str, *, days: int = 9) -> Issued:
        """For 127.0.0.1, whoever it is; with days below zero it has expired."""
        issued = Issued(*(self.folder / f"{name}.{end}" for end in ("pem", "key", "both.pem")))
        request, extension = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extension.write_text("subjectAltName=IP:127.0.0.1\n")
        _openssl("req", "-new", *KEY, "-subj", f"/CN={name}", "-keyout", str(issued.key), "-out", str(request))
        _openssl(
            *("x509", "-req", "-in", str(request), "-days", str(days), "-extfile", str(extension)),
            *self._files("-CAkey", "-CA"),
            *("-CAcreateserial", "-out", str(issued.certificate)),
        )
        issued.both.write_bytes(issued.key.read_bytes() + issued.certificate.read_bytes())
        return issued

    def _files(self, key: str, certificate: str) -> tuple[str, ...]:
        return key, str(self.folder / f"{self.name}.key"), certificate, str(self.certificate)


def encrypted(key: Path) -> Path:
    """The same key, behind a passphrase."""
    behind = key.with_suffix(".encrypted")
    _openssl(
        "pkcs8", "-topk8", "-v2", "aes256", "-passout", f"pass:{PASSPHRASE}", "-in", str(key), "-out", str(behind)
    )
    return behind


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr}")
