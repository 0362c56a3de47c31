"""Prints which licences the Python packages in a folder have, and where their texts lie: ``python -m install.licences SITE_PACKAGES``.

What a wheel says of itself counts: License-Expression (PEP 639), else License, else its classifier. A package that names none, or that
does not bring the text along, ends it with status 2: then somebody has to look.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePath

OWN = "kafka-segment-tail"
_CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD",
    "License :: OSI Approved :: MIT License": "MIT",
}
_HEAD = """The Python packages that come with segtail, and their licences, as each of them names it. The texts lie below
/usr/lib/segtail/lib/python3.11/site-packages. Compiled packages have libraries of others in them, which their texts name.
"""


@dataclass(frozen=True, slots=True)
class Licence:
    """What one package says: ``name`` as an SPDX expression where the package has one, and its texts, relative to site-packages."""

    package: str
    version: str
    name: str
    texts: tuple[PurePath, ...]


def licence(found: Distribution) -> Licence:
    """What a package says of its licence.

    Raises:
        ValueError: it names none, or brings no text.
    """
    stated = found.metadata
    classified = [_CLASSIFIERS[each] for each in stated.get_all("Classifier") or () if each in _CLASSIFIERS]
    named = [value for field in ("License-Expression", "License") for value in stated.get_all(field) or ()]
    name = next(iter(named), " AND ".join(classified))
    texts = tuple(sorted(file for file in found.files or () if _is_text(file)))
    if not name or "\n" in name or not texts:
        raise ValueError(f"{found.name} {found.version}: its METADATA names no licence, or its .dist-info has no text of it")
    return Licence(found.name, found.version, name, texts)


def _is_text(file: PurePath) -> bool:
    in_info = any(part.endswith(".dist-info") for part in file.parts)
    return in_info and file.name.upper().startswith(("LICEN", "COPYING", "NOTICE"))


def lines(licences: Iterable[Licence]) -> Iterator[str]:
    """The list for people, in the order of the packages' names."""
    yield _HEAD
    for each in sorted(licences, key=lambda each: each.package.lower()):
        yield f"{each.package} {each.version}: {each.name}"
        yield from (f"    {text}" for text in each.texts)


def main(site: Path) -> int:
    """Print the list of a folder."""
    found = [each for each in distributions(path=[str(site)]) if each.name != OWN]
    try:
        licences = [licence(each) for each in found]
    except ValueError as error:
        sys.stderr.write(f"licences: {error}\n")
        return 2
    if not licences:
        sys.stderr.write(f"licences: there are no packages in {site}\n")
        return 2
    sys.stdout.writelines(f"{line}\n" for line in lines(licences))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
