"""Makes wheel and sdist reproducible, and adds a bill of materials to the wheel.

Times, modes and owners of the files no longer depend on the build. The wheel's bill of
materials (CycloneDX 1.6, PEP 770) states that it contains no software of others; its
requirements are in METADATA.
"""

import base64
import gzip
import hashlib
import json
import stat
import tarfile
import time
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

_FILE = stat.S_IFREG | 0o644


def make_sbom(metadata: bytes, epoch: int) -> dict[str, Any]:
    """Returns the bill of materials of a wheel without software of others.

    Args:
        metadata: Contents of the wheel's METADATA.
        epoch: Time of the release in seconds since 1970.
    """
    fields = message_from_bytes(metadata)
    name, version = fields["Name"], fields["Version"]
    component = {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": version,
        "licenses": [{"license": {"id": fields["License"]}}],
        "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
    }
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": moment, "component": component},
        "components": [],
        "compositions": [{"aggregate": "complete", "assemblies": [name]}],
    }


def finish_wheel(path: Path, epoch: int) -> None:
    """Adds the bill of materials and sets the times and modes of all files."""
    with zipfile.ZipFile(path) as wheel:
        contents = {name: wheel.read(name) for name in wheel.namelist()}
    (record,) = (name for name in contents if name.endswith(".dist-info/RECORD"))
    folder = record.removesuffix("/RECORD")
    name = f"{folder}/sboms/t2t_repro.cdx.json"
    sbom = json.dumps(make_sbom(contents[f"{folder}/METADATA"], epoch), indent=2)
    contents[name] = f"{sbom}\n".encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest())
    line = f"{name},sha256={digest.decode().rstrip('=')},{len(contents[name])}\n"
    contents[record] = line.encode() + contents.pop(record)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in contents.items():
            info = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, _FILE << 16
            wheel.writestr(info, data)


def finish_sdist(path: Path, epoch: int) -> None:
    """Sets the times, modes and owners of all files and folders."""
    plain = path.with_suffix(".tmp")
    with (
        tarfile.open(path) as sdist,
        plain.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=epoch) as stream,
        tarfile.open(fileobj=stream, mode="w") as finished,
    ):
        for member in sorted(sdist.getmembers(), key=lambda each: each.name):
            info = tarfile.TarInfo(member.name)
            info.type, info.size, info.mtime = member.type, member.size, epoch
            info.mode = 0o755 if member.isdir() else 0o644
            finished.addfile(info, sdist.extractfile(member))
    plain.replace(path)
