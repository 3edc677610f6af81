"""A clean root of this machine's own distribution, made from the sources that apt has here, and commands inside it."""
import os
import pathlib
import shutil
import subprocess

from kit import must, run

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"
# Mounts live in a namespace of their own and go with it, and so do processes.
ENTER = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
         'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && root=$0 && exec chroot "$root" "$@"']


class Root:
    def __init__(self, path):
        self.path = path

    @classmethod
    def make(cls, folder):
        """The least that Debian can be."""
        release = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
        sources = folder / "sources.list"
        sources.write_text(must(SCRIPTS / "apt-sources"))
        path = folder / "root"
        must("mmdebstrap", "--quiet", "--variant=minbase", release["VERSION_CODENAME"].strip('"'), path, sources)
        root = cls(path)
        shutil.copy("/etc/resolv.conf", path / "etc/resolv.conf")
        # Installing must not start a server.
        (path / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (path / "usr/sbin/policy-rc.d").chmod(0o755)
        return root

    def words(self, *words):
        return [*ENTER, str(self.path), *(str(word) for word in words)]

    def run(self, *words):
        return run(*self.words(*words), env=self.environment())

    def must(self, *words):
        return must(*self.words(*words), env=self.environment())

    def install(self, *packages):
        self.must("apt-get", "update", "-qq")
        return self.must("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)

    def start(self, *words, environment=None):
        """A process inside, as a user without rights and without a home."""
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
        return subprocess.Popen(self.words(*user, *words), env={"PATH": "/usr/bin:/usr/sbin", **(environment or {})}, stderr=subprocess.PIPE, text=True)

    def find(self, *patterns):
        """What is left on the disk under such a name, records of what was installed aside."""
        tests = [word for pattern in patterns for word in ("-o", "-name", pattern)][1:]
        found = self.must("find", "/", "-xdev", "(", "-path", "/proc", "-o", "-path", "/dev", "-o", "-path", "/tmp", "-o", "-path", "/var/log", "-o", "-path", "/var/cache", ")", "-prune",
                          "-o", "(", *tests, ")", "-print")
        return found.split()

    @staticmethod
    def environment():
        proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root", **proxies}
