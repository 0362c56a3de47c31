"""The archive for a maintainer: it has what is needed, and no secret that lies anywhere around it."""

import tarfile
from pathlib import Path

import bcrypt
import pytest
import yaml

from tests.builders import log_dir
from tests.commands import run_command
from tests.serving import answering

TOKEN, OTHER, KEY, PASSWORD, SPARK, STORE = (f"planted{number}-{'0f9Xq' * 5}" for number in range(6))
HASHED = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Options of a job that has secrets wherever one may be, with a log that holds some of them, too."""
    (tmp_path / "tokens").write_text(f"# of the jobs that may read here\njobs {TOKEN}\n")
    (tmp_path / "own").write_text(OTHER)
    (tmp_path / "key.pem").write_text(f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n")
    (tmp_path / "web.yaml").write_text(yaml.safe_dump({"basic_auth_users": {"ann": HASHED}}))
    said = [
        f'level=error error="the token {TOKEN} is not known" password={PASSWORD}',
        f"Authorization: Bearer {OTHER}",
        (tmp_path / "key.pem").read_text(),
        f"basic_auth_users: {HASHED}",
        f"https://ann:{PASSWORD}@job:9712 answers",
        'level=info message="agent listens"',
    ]
    journal = tmp_path / "bin" / "journalctl"
    journal.parent.mkdir()
    (tmp_path / "said").write_text("\n".join(said))
    journal.write_text(f"#!/bin/sh\nexec /bin/cat {tmp_path / 'said'}\n")
    journal.chmod(0o755)
    monkeypatch.setenv("PATH", str(journal.parent))
    disk = log_dir(tmp_path)
    disk.release()
    secret = {"tls_key": tmp_path / "key.pem", "agent_token_file": tmp_path / "own", "token_file": tmp_path / "tokens"}
    given = [word for name, path in secret.items() for word in ("--set", f"{name}={path}")]
    more = (
        f"broker_config={{ssl.keystore.password: {STORE}}}",
        f"spark.hadoop.fs.s3a.secret.key={SPARK}",
        f"web_config={tmp_path / 'web.yaml'}",
    )
    return ["--log-dirs", disk.path, "--listen", "127.0.0.1:0", *given, *(word for each in more for word in ("--set", each))]


def test_it_has_what_is_needed_and_no_secret(planted: list[object], tmp_path: Path) -> None:
    bundle = tmp_path / "for-you.tar.gz"
    page = f'segtail_build_info{{version="1"}} 1\nsegtail_odd{{address="http://ann:{PASSWORD}@job"}} 1\n'.encode()
    with answering(lambda path: (200, page if path == "/metrics" else b'{"version": "1"}')) as url:
        done = run_command("doctor", *planted, "--job", url.replace("http://", f"http://ann:{PASSWORD}@"), "--bundle", bundle)
    with tarfile.open(bundle) as archive:
        files = {Path(each.name).name: archive.extractfile(each).read().decode() for each in archive}  # type: ignore[union-attr]
    assert bundle.stat().st_mode & 0o077 == 0
    assert files.keys() == {"versions.txt", "config.yaml", "doctor.txt", "status.json", "metrics.prom", "log.txt"}
    assert all(name in done.stderr for name in files)
    holding = {
        (name, secret)
        for name, text in files.items()
        for secret in (TOKEN, OTHER, KEY, PASSWORD, SPARK, STORE, "$2b$", "PRIVATE KEY")
        if secret in text
    }
    assert holding == set()
    assert not any(secret in done.stdout + done.stderr for secret in (TOKEN, OTHER, KEY, PASSWORD, SPARK, STORE))
    assert "segtail_build_info" in files["metrics.prom"]
    assert "agent listens" in files["log.txt"]
    assert f"token_file: {tmp_path / 'tokens'}" in files["config.yaml"], "a path is none"
    assert files["doctor.txt"].splitlines()[0].split() == ["state", "check", "what"]


def test_a_file_that_is_there_is_kept(planted: list[object], tmp_path: Path) -> None:
    bundle = tmp_path / "there.tar.gz"
    bundle.write_text("mine")
    done = run_command("doctor", *planted, "--bundle", bundle)
    assert (done.returncode, bundle.read_text()) == (2, "mine")
    assert f"--bundle {bundle} is there already: name another file" in done.stderr


def test_where_systemd_has_no_log_it_says_so(planted: list[object], tmp_path: Path) -> None:
    (tmp_path / "said").write_text("")
    bundle = tmp_path / "by-hand.tar.gz"
    assert run_command("doctor", *planted, "--bundle", bundle).returncode in {0, 3}
    with tarfile.open(bundle) as archive:
        log = archive.extractfile("segtail-bundle/log.txt").read().decode()  # type: ignore[union-attr]
    assert log == "systemd has no log of segtail-agent or segtail-job: please add what segtail has written to its stderr\n"
