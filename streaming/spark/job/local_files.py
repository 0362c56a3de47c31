"""Hadoop's local file system without a process for each file that Spark commits.

Where Hadoop's native library is missing, as in PySpark, `RawLocalFileSystem` starts ``chmod`` and ``readlink`` for files. These are 15 to
20 processes per micro-batch, for offsets, commits and the changelog of the state. Java has had both calls since version 7. The class below
is Hadoop's, with those two methods replaced. Janino compiles it when the job starts. Spark contains Janino, for the code that it generates
itself.
"""

import logging
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from streaming.spark.query.query import reason

log = logging.getLogger(__name__)

OPTION = "spark.hadoop.fs.AbstractFileSystem.file.impl"
"""The file system of Spark's checkpoints. Never ``spark.hadoop.fs.file.impl``, which breaks RocksDB."""

FALLBACK = "org.apache.hadoop.fs.local.RawLocalFs"
"""It starts one process for each file. The file system with checksums starts two."""

NAME = "segtail.LocalFiles"

SOURCE = """
package segtail;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermission;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends DelegateToFileSystem {
  public LocalFiles(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, new Raw(), conf, FsConstants.LOCAL_FS_URI.getScheme(), false);
  }

  public int getUriDefaultPort() { return -1; }

  public boolean isValidName(String name) { return true; }

  public static class Raw extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
      PosixFilePermission[] bits = {
        PosixFilePermission.OTHERS_EXECUTE, PosixFilePermission.OTHERS_WRITE, PosixFilePermission.OTHERS_READ,
        PosixFilePermission.GROUP_EXECUTE, PosixFilePermission.GROUP_WRITE, PosixFilePermission.GROUP_READ,
        PosixFilePermission.OWNER_EXECUTE, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_READ};
      Set allowed = new HashSet();
      for (int bit = 0; bit < bits.length; bit++) {
        if ((permission.toShort() & (1 << bit)) != 0) allowed.add(bits[bit]);
      }
      Files.setPosixFilePermissions(pathToFile(path).toPath(), allowed);
    }

    public FileStatus getFileLinkStatus(Path path) throws IOException {
      if (Files.isSymbolicLink(pathToFile(path).toPath())) return super.getFileLinkStatus(path);
      return getFileStatus(path);
    }
  }
}
"""


def compile_into(gateway: Any, classes: Path) -> str:
    """Compile the file system into a directory of the JVM's class path; returns the name of the class to use.

    Args:
        gateway: py4j's view of the JVM, before Spark has opened a file system in it.
    """
    try:
        compiler = gateway.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(gateway.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(SOURCE)
        compiled = dict(compiler.getBytecodes())
        (classes / "segtail").mkdir(parents=True, exist_ok=True)
        for name, code in compiled.items():
            (classes / f"{name.replace('.', '/')}.class").write_bytes(bytes(code))
        gateway.java.lang.Class.forName(NAME)
    except (Py4JError, TypeError, OSError) as error:
        log.warning(
            "each file of the checkpoint costs a process, because the file system cannot be compiled",
            extra={"error": reason(error)},
        )
        return FALLBACK
    return NAME
