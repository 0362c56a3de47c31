"""Prints what is in the machine or image that it runs in, as JSON: packages of Debian and of the Python that runs it, and their jars."""

import hashlib
import json
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

_POM = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")
_FILE_NAME = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.]*(?:-\d+)?)|(?P<joined>\w*[a-z])(?P<its_version>\d+(?:\.\d+)+)$")
_GROUPS = {
    "ch.epfl.scala": "bsp4j",
    "com.fasterxml.jackson.module": "jackson-module-scala",
    "com.github.luben": "zstd-jni",
    "com.google.code.findbugs": "jsr305",
    "com.google.crypto.tink": "tink",
    "com.lihaoyi": "ammonite ammonite-compiler ammonite-compiler-interface ammonite-interp ammonite-interp-api ammonite-repl "
    "ammonite-repl-api ammonite-runtime ammonite-terminal ammonite-util fansi fastparse geny mainargs os-lib os-zip pprint requests "
    "scalaparse sourcecode ujson upack upickle upickle-core upickle-implicits",
    "com.thesamet.scalapb": "lenses scalapb-runtime",
    "com.twitter": "chill chill-java",
    "io.get-coursier": "class-path-util dependency dependency-interface interface",
    "javax.jdo": "jdo-api",
    "javax.transaction": "jta transaction-api",
    "net.sf.py4j": "py4j",
    "net.sourceforge.f2j": "arpack_combined_all",
    "org.apache.derby": "derby derbyshared derbytools",
    "org.apache.hadoop": "hadoop-client-runtime",
    "org.apache.ivy": "ivy",
    "org.apache.thrift": "libfb303 libthrift",
    "org.eclipse.lsp4j": "org.eclipse.lsp4j.generator org.eclipse.lsp4j.jsonrpc",
    "org.eclipse.xtend": "org.eclipse.xtend.lib org.eclipse.xtend.lib.macro",
    "org.eclipse.xtext": "org.eclipse.xtext.xbase.lib",
    "org.json4s": "json4s-ast json4s-core json4s-jackson json4s-jackson-core json4s-scalap",
    "org.objenesis": "objenesis",
    "org.roaringbitmap": "RoaringBitmap",
    "org.rocksdb": "rocksdbjni",
    "org.scala-lang": "scala-compiler scala-library scala-reflect",
    "org.scala-lang.modules": "scala-parallel-collections scala-parser-combinators scala-xml",
    "org.scalameta": "common io parsers scalameta semanticdb-shared trees",
    "org.scalanlp": "breeze breeze-macros",
    "org.tpolecat": "typename",
    "org.tukaani": "xz",
    "org.typelevel": "algebra cats-kernel spire spire-macros spire-platform spire-util",
    "org.xerial.snappy": "snappy-java",
    "oro": "oro",
    "stax": "stax-api",
}
"""Whose jars those are that do not say it: the group by which Maven knows them, and their names without the version of Scala."""

_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names.split()}


def packages() -> list[dict[str, str]]:
    """Each with ``kind`` (deb, maven or pypi), ``name``, ``version`` and what else that kind has, sorted."""
    release = platform.freedesktop_os_release()
    here = f"{release['ID']}-{release.get('VERSION_ID', '')}"
    query = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\n"]
    lines = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()
    debs = [line.split("\t")[1:] for line in lines if line.startswith("installed\t")]
    found = [{"kind": "deb", "name": name, "version": version, "architecture": arch, "release": here} for name, version, arch in debs]
    found += [{"kind": "pypi", "name": each.name.lower().replace("_", "-"), "version": each.version} for each in distributions()]
    found += jars(Path(sys.prefix))  # Spark's, and py4j's, which lies elsewhere
    return sorted(found, key=lambda each: (each["kind"], each["name"], each.get("classifier", ""), each.get("sha256", "")))


def jars(folder: Path) -> Iterator[dict[str, str]]:
    """Each jar below a folder, with ``group``, ``name``, ``version``, ``classifier`` (which may be empty) and ``sha256``."""
    for path in folder.rglob("*.jar"):
        yield {"kind": "maven", **_coordinates(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _coordinates(path: Path) -> dict[str, str]:
    """What Maven calls a jar: by its own description, which is one of several where others are packed into it, else by its file's name."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            pom = _POM.fullmatch(entry)
            if pom is None or not path.stem.startswith(f"{pom[2]}-"):
                continue
            version = re.search(r"(?m)^version=(\S+)", archive.read(entry).decode())
            rest = path.stem.removeprefix(f"{pom[2]}-")
            if version is not None and f"{rest}-".startswith(f"{version[1]}-"):
                return _told(pom[1], pom[2], version[1], rest.removeprefix(version[1]))
    named = _FILE_NAME.match(path.stem)
    name = (named["name"] or named["joined"]) if named else path.stem
    version_of_name = (named["version"] or named["its_version"]) if named else ""
    return _told(_GROUP_OF.get(re.sub(r"_2\.13(\.\d+)?$", "", name), ""), name, version_of_name, path.stem[named.end() :] if named else "")


def _told(group: str, name: str, version: str, rest: str) -> dict[str, str]:
    return {"group": group, "name": name, "version": version, "classifier": rest.removeprefix("-")}


if __name__ == "__main__":
    json.dump(packages(), sys.stdout)
