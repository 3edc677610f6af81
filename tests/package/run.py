"""Tries what `scripts/package` made: checksums, the tarball, the container, and the Debian package in a clean root.

Usage: run.py [FOLDER]   target/package unless told. Needs root, mmdebstrap, and podman for the parts under systemd and in a container.
"""
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import archive  # noqa: E402
import deb  # noqa: E402
import image  # noqa: E402
from kit import check, failed, run, step  # noqa: E402


def one(folder, pattern):
    found = sorted(folder.glob(pattern))
    return found[0] if found else None


def main():
    made = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/package").resolve()
    step("SHA256SUMS")
    ran = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=made)
    check("every file is as its checksum says", ran.returncode == 0, ran.stdout + ran.stderr)
    listed = {line.split()[1] for line in (made / "SHA256SUMS").read_text().splitlines()}
    there = {path.name for path in made.iterdir() if path.is_file()} - {"SHA256SUMS"}
    check("every file has one", listed == there, listed ^ there)
    # Not in a folder of this tree: other users must be able to enter it.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="koboshi-package-"))
    folder.chmod(0o755)
    try:
        archive.test(one(made, "*.tar.gz"), folder)
        image.test(one(made, "*-image.tar"), made / "container", folder)
        deb.test(one(made, "*.deb"), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if failed:
        sys.exit(f"\n{len(failed)} wrong: " + "; ".join(failed))
    print("\nall good")


main()
