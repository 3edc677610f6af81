"""The Debian package in a clean root: it installs, serves, explains itself, runs under systemd, and leaves nothing behind."""
import contextlib
import json
import shutil
import signal

from kit import Podman, ask, chat, check, free_port, is_healthy, left_out, limits, must, run, step, until
from root import Root

CONFIG = "/etc/koboshi/koboshi.yaml"
STORE = "/var/lib/koboshi/koboshi.db"
TOOLS = ["man-db", "groff", "bash-completion", "zsh", "fish", "systemd", "systemd-sysv", "dbus", "procps"]
BASH = """source /usr/share/bash-completion/bash_completion
_completion_loader koboshi
COMP_WORDS=(koboshi "$@"); COMP_CWORD=$#; COMP_LINE="koboshi $*"; COMP_POINT=${#COMP_LINE}
$(complete -p koboshi | sed 's/.*-F \\([^ ]*\\).*/\\1/') koboshi "${@: -1}" "${@: -2:1}"
echo "${COMPREPLY[@]}" """
ZSH = "autoload -Uz compinit && compinit -u -d /tmp/zcompdump && echo ${_comps[koboshi]} && autoload +X _koboshi && echo loaded"


def test(deb, folder):
    step("a clean root")
    root = Root.make(folder)
    check("there is no koboshi in it", not root.find("*koboshi*"))
    shutil.copy(deb, root.path / "tmp/koboshi.deb")

    step("installed")
    root.install("/tmp/koboshi.deb")
    version = deb.name.split("_")[1].split("-")[0]
    said = root.run("koboshi", "--version").stdout.strip()
    check(f"koboshi --version says {version}", said == f"koboshi {version}", said)
    ran = root.run("koboshi", "check", CONFIG)
    check("its config is good", ran.returncode == 0, ran.stdout + ran.stderr)
    mode = root.must("stat", "-c", "%a %U", "/etc/koboshi/keys.env").strip()
    check("the file for keys is root's alone", mode == "600 root", mode)
    served(root)

    step("manual pages, completions and the unit")
    root.install(*TOOLS)
    manual(root)
    completions(root)
    unit(root)
    under_systemd(root, folder)
    upgrade_and_purge(root)


def served(root):
    """As a user without rights, without a home, with the config of the package."""
    port = free_port()
    process = root.start("koboshi", "serve", "--listen", f"127.0.0.1:{port}", "--store", "memory", environment={"KOBOSHI_CONFIG": CONFIG})
    check("koboshi serve starts", is_healthy(port))
    check("it answers", chat(port, "sim/ok"))
    # The signal goes to the program itself: the process here is what entered the root.
    for child in run("pgrep", "-f", f"koboshi serve --listen 127.0.0.1:{port}").stdout.split():
        if run("cat", f"/proc/{child}/comm").stdout.strip() == "koboshi":
            must("kill", "-TERM", child)
    check("SIGTERM ends it with status 0", until(lambda: process.poll() is not None) and process.returncode == 0, process.returncode)
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)


def manual(root):
    pages = root.must("sh", "-c", "ls /usr/share/man/man1/koboshi*").split()
    check(f"there are manual pages ({len(pages)})", len(pages) > 10, pages)
    for page in pages:
        ran = root.run("man", "--warnings", "-E", "UTF-8", "-l", page)
        check(f"man -l {page.rsplit('/')[-1]}", ran.returncode == 0 and "SYNOPSIS" in ran.stdout and not ran.stderr.strip(), ran.stderr or ran.stdout)
    found = root.run("man", "koboshi-serve")
    check("man koboshi-serve finds it by its name", found.returncode == 0 and "--listen" in found.stdout, found.stderr)


def completions(root):
    said = root.run("bash", "-c", BASH, "bash", "ser")
    check("bash completes `koboshi ser`", "serve" in said.stdout.split(), said.stdout + said.stderr)
    said = root.run("bash", "-c", BASH, "bash", "serve", "--st")
    check("bash completes `koboshi serve --st`", "--store" in said.stdout.split(), said.stdout + said.stderr)
    said = root.run("fish", "-c", "complete -C 'koboshi ser'")
    check("fish completes `koboshi ser`", said.stdout.startswith("serve"), said.stdout + said.stderr)
    said = root.run("zsh", "-fc", ZSH)
    check("zsh knows and loads its completions", said.stdout.split() == ["_koboshi", "loaded"], said.stdout + said.stderr)


def unit(root):
    ran = root.run("systemd-analyze", "verify", "--man=yes", "koboshi.service")
    ours = [line for line in (ran.stdout + ran.stderr).splitlines() if "koboshi" in line]
    check("systemd-analyze verify finds nothing wrong", ran.returncode == 0 and not ours, ran.stdout + ran.stderr)
    ran = root.run("env", "XDG_RUNTIME_DIR=/tmp", "systemd-analyze", "--user", "verify", "--man=yes", "koboshi-agents.service")
    ours = [line for line in (ran.stdout + ran.stderr).splitlines() if "koboshi" in line]
    check("systemd-analyze verify finds nothing wrong with the unit for agents", ran.returncode == 0 and not ours, ran.stdout + ran.stderr)
    ran = root.run("systemd-analyze", "security", "--offline=true", "--threshold=20", "koboshi.service")
    last = (ran.stdout.strip().splitlines() or [ran.stderr])[-1]
    check(f"systemd-analyze security: {last.strip()}", ran.returncode == 0, ran.stdout + ran.stderr)


def under_systemd(root, folder):
    step("the service under systemd")
    podman = Podman(folder)
    if not shutil.which("podman") or not podman.find_runtime("--rootfs", root.path, "/bin/true"):
        left_out("the service", podman.why)
        return
    name = f"koboshi-test-{folder.name}"
    started = podman("run", "--detach", "--name", name, "--network", "host", "--privileged", "--systemd", "always", *limits(), "--rootfs", root.path, "/sbin/init")

    def inside(*words):
        return podman("exec", name, *words)

    try:
        if started.returncode or not until(lambda: inside("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")):
            left_out("the service", f"systemd does not start here: {started.stderr.strip()[-200:]}")
            return
        service(root, inside)
    finally:
        podman("rm", "--force", "--time", "5", name)


def service(root, inside):
    state = inside("systemctl", "is-active", "koboshi").stdout.strip()
    check("it is not started by the installation", state == "inactive", state)
    port, config = free_port(), root.path / CONFIG[1:]
    mine = config.read_text() + f"\nserve: {{listen: '127.0.0.1:{port}'}}\n"
    config.write_text(mine)
    (root.path / "etc/koboshi/keys.env").write_text("OPENAI_API_KEY=not-a-real-key\n")
    ran = inside("systemctl", "enable", "--now", "koboshi")
    check("systemctl enable --now koboshi", ran.returncode == 0, ran.stderr)
    if not check("it answers", is_healthy(port) and chat(port, "sim/ok"), inside("journalctl", "-u", "koboshi", "--no-pager").stdout):
        return
    check("the key of keys.env makes its provider known", "openai" in inside("journalctl", "-u", "koboshi", "--no-pager").stdout)
    pid = main_pid(inside)
    status = dict(line.split(":", 1) for line in inside("cat", f"/proc/{pid}/status").stdout.splitlines() if ":" in line)
    check("it is not root", status["Uid"].split()[0] != "0", status["Uid"])
    check("it has no rights and can get none", int(status["CapEff"], 16) == 0 and status["NoNewPrivs"].strip() == "1", status)
    check("the store is in its state folder, its alone", inside("stat", "-L", "-c", "%a", STORE).stdout.strip() == "600", inside("ls", "-laL", "/var/lib/koboshi").stdout)
    ran = inside("koboshi", "status", "--store", STORE)
    check("root looks at its store with koboshi status", ran.returncode == 0, ran.stdout + ran.stderr)
    ran = inside("koboshi", "status", "--url", f"http://127.0.0.1:{port}")
    check("koboshi status --url asks the service", ran.returncode == 0, ran.stdout + ran.stderr)
    config.write_text(mine + "routes: {new: [sim/ok]}\n")
    check("systemctl reload brings a new config", inside("systemctl", "reload", "koboshi").returncode == 0 and until(lambda: chat(port, "new")))
    check("and keeps the process", main_pid(inside) == pid)
    inside("kill", "-KILL", pid)
    check("it comes back after a crash", until(lambda: main_pid(inside) not in ("0", pid)) and is_healthy(port))
    config.write_text("routs: {}\n")
    inside("systemctl", "restart", "koboshi")
    until(lambda: inside("systemctl", "is-failed", "koboshi").stdout.strip() == "failed")
    shown = inside("systemctl", "show", "koboshi", "-p", "Result,NRestarts,ExecMainStatus").stdout
    check("a bad config ends the start with status 2, once", "ExecMainStatus=2" in shown and "NRestarts=0" in shown, shown)
    config.write_text(mine)
    check("a good one starts again", inside("systemctl", "restart", "koboshi").returncode == 0 and is_healthy(port))
    check("the admin interface answers on this machine", "targets" in json.loads(ask(port, "/koboshi/targets")[1] or "{}"))
    inside("systemctl", "stop", "koboshi")
    shown = inside("systemctl", "show", "koboshi", "-p", "Result,ExecMainStatus").stdout
    check("systemctl stop ends it with status 0", "Result=success" in shown and "ExecMainStatus=0" in shown, shown)


def main_pid(inside):
    return inside("systemctl", "show", "koboshi", "-p", "MainPID", "--value").stdout.strip()


def upgrade_and_purge(root):
    step("upgraded and purged")
    config = root.path / CONFIG[1:]
    config.write_text(config.read_text() + "# mine\n")
    root.must("apt-get", "install", "-y", "-qq", "--reinstall", "/tmp/koboshi.deb")
    check("an upgrade keeps a changed config", config.read_text().endswith("# mine\n"))
    root.must("apt-get", "remove", "-y", "-qq", "koboshi")
    check("removed, the config stays", config.exists() and not (root.path / "usr/bin/koboshi").exists())
    root.must("apt-get", "purge", "-y", "-qq", "koboshi")
    left = root.find("*koboshi*")
    check("purged, nothing is left", not left, left)
