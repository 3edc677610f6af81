"""The tarball: unpacked into a prefix it works, and what it has can be taken away again."""
import subprocess
import tarfile

from kit import chat, check, free_port, is_healthy, must, run, step, until


def test(archive, folder):
    step(archive.name)
    prefix = folder / "prefix"
    prefix.mkdir()
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        check("its files are root's", all(member.uid == 0 and member.gid == 0 for member in tar.getmembers()))
        check("all are in one folder", {name.split("/")[0] for name in names} == {archive.name.removesuffix(".tar.gz")}, names[:5])
    must("tar", "-xzf", archive, "-C", prefix, "--strip-components=1")
    wanted = ["bin/koboshi", "share/man/man1/koboshi.1.gz", "share/bash-completion/completions/koboshi", "share/zsh/site-functions/_koboshi", "share/fish/vendor_completions.d/koboshi.fish",
              "share/doc/koboshi/LICENSE-MIT", "share/doc/koboshi/LICENSE-APACHE", "share/doc/koboshi/third-party-licences.txt", "share/doc/koboshi/examples/koboshi.yaml",
              "share/doc/koboshi/examples/koboshi.service", "share/doc/koboshi/examples/koboshi-agents.service"]
    missing = [name for name in wanted if not (prefix / name).is_file()]
    check("it has the program, manual pages, completions, licences and examples", not missing, missing)
    version = archive.name.split("-")[1]
    said = run(prefix / "bin/koboshi", "--version").stdout.strip()
    check(f"bin/koboshi --version says {version}", said == f"koboshi {version}", said)
    port = free_port()
    process = subprocess.Popen([prefix / "bin/koboshi", "serve", "--listen", f"127.0.0.1:{port}", "--store", "memory"], env={}, cwd=prefix, stderr=subprocess.DEVNULL)
    try:
        check("it serves and answers", is_healthy(port) and chat(port, "sim/ok"))
        process.terminate()
        check("SIGTERM ends it with status 0", until(lambda: process.poll() is not None) and process.returncode == 0, process.returncode)
    finally:
        process.kill()
    # As docs/install.md says.
    must("sh", "-c", "tar -tzf \"$0\" | grep -v '/$' | cut -d/ -f2- | (cd \"$1\" && xargs rm -f)", archive, prefix)
    left = [path for path in prefix.rglob("*") if path.is_file()]
    check("what it unpacked can be taken away again", not left, left)
