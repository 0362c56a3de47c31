"""The package as a zip for executors elsewhere: pure Python, as Spark ships it. The executors must have the libraries that it needs."""

import zipfile
from pathlib import Path

import streaming

_EARLIEST = (1980, 1, 1, 0, 0, 0)


def zip_package(directory: Path) -> Path:
    """Write ``segtail-<version>.zip`` with the package ``streaming`` as it runs here. The same sources produce the same bytes."""
    root = Path(streaming.__file__).parent
    path = directory / f"segtail-{streaming.__version__}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*.py")):
            info = zipfile.ZipInfo(str(file.relative_to(root.parent)), _EARLIEST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, file.read_bytes())
    return path
