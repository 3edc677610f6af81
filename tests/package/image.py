"""The container: read-only, without rights and without a home it starts and answers. Where no container can run, the root that the image is made of is entered instead."""
import hashlib
import shutil
import subprocess
import tarfile

from kit import Podman, ask, chat, check, free_port, is_healthy, left_out, limits, must, step, until

STRICT = ["--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--network", "host"]


def test(image, context, folder):
    step(f"the container, {image.name if image else 'no image was built'}")
    contents(context / "root.tar")
    podman = Podman(folder)
    if image and shutil.which("podman"):
        loaded = podman("load", "--quiet", "--input", image)
        check("the image is loaded", loaded.returncode == 0, loaded.stderr)
        name = "localhost/koboshi:" + image.name.split("-")[1]
        if podman.find_runtime(name, "--version"):
            in_podman(podman, name, folder)
            return
    left_out("the image in podman", podman.why)
    in_root(context / "root.tar", folder)


def contents(path):
    with tarfile.open(path) as tar:
        members = {member.name.removeprefix("./"): member for member in tar.getmembers()}
    programs = [name for name, member in members.items() if member.isfile() and member.mode & 0o111 and ".so" not in name]
    check("the only program in it is koboshi", programs == ["usr/bin/koboshi"], programs)
    check("its user can write the state folder", members["var/lib/koboshi"].uid == 65532)
    check("it has root certificates", members["etc/ssl/certs/ca-certificates.crt"].size > 100_000)


def in_podman(podman, image, folder):
    """One container after another; each goes when it ends."""
    port = free_port()
    name = f"koboshi-image-{folder.name}"

    def start(*options, listen=("serve", "--listen", f"127.0.0.1:{port}")):
        return podman("run", "--detach", "--name", name, *STRICT, *limits(), *options, image, *listen)

    def logs():
        ran = podman("logs", name)
        return ran.stdout + ran.stderr

    def end():
        stopped = podman("stop", "--time", "20", name)
        code = podman("inspect", name, "--format", "{{.State.ExitCode}}").stdout.strip()
        podman("rm", "--force", name)
        return code if stopped.returncode == 0 else stopped.stderr

    started = start()
    check("read-only, without rights and without a home it answers", started.returncode == 0 and is_healthy(port) and chat(port, "sim/ok"), started.stderr + logs())
    user = podman("top", name, "huser", "user").stdout
    check("it is not root", "65532" in user or "koboshi" in user, user)
    check("stopped, it ends with status 0", (code := end()) == "0", code)

    config = folder / "own.yaml"
    config.write_text("routes: {talk: [sim/fail-503, sim/ok]}\n")
    mounted = ["--volume", f"{config}:/etc/koboshi/koboshi.yaml:ro"]
    start(*mounted)
    ended = until(lambda: podman("inspect", name, "--format", "{{.State.Status}} {{.State.ExitCode}}").stdout.split() == ["exited", "2"])
    check("a config without `store` and without a volume stops it with a hint", ended and "--store memory" in logs(), logs())
    podman("rm", "--force", name)

    data = folder / "data"
    data.mkdir()
    must("chown", "65532:65532", data)
    start(*mounted, "--volume", f"{data}:/var/lib/koboshi")
    check("with a volume it keeps what it learned there", is_healthy(port) and chat(port, "talk") and (data / "koboshi.db").exists(), logs())
    end()
    start(*mounted, listen=("serve", "--listen", f"127.0.0.1:{port}", "--store", "memory"))
    check("and `--store memory` does without", is_healthy(port) and chat(port, "talk"), logs())
    end()

    config.write_text(f"serve: {{listen: '0.0.0.0:4141'}}\nstore: memory\nkeys: {{alice: {{sha256: {hashlib.sha256(b'secret').hexdigest()}}}}}\n")
    published = ["run", "--detach", "--name", name, "--read-only", "--cap-drop", "all", *limits(), *mounted, "--publish", f"127.0.0.1:{port}:4141", image]
    started = podman(*published)
    if started.returncode:
        left_out("a published port", started.stderr.strip()[-200:])
    else:
        body = {"model": "sim/ok", "messages": [{"role": "user", "content": "hello"}]}
        asked = [ask(port, "/v1/chat/completions", body, headers)[0] for headers in ((), {"authorization": "Bearer secret"})] if is_healthy(port) else []
        check("at a published port it answers only those who have a key", asked == [401, 200], f"{asked} {logs()}")
    podman("rm", "--force", "--time", "5", name)


def in_root(tar, folder):
    """The same root, read-only, by chroot."""
    root = folder / "image-root"
    root.mkdir()
    must("tar", "-xf", tar, "-C", root)
    port = free_port()
    enter = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec chroot --userspec=65532:65532 "$0" /usr/bin/koboshi serve --listen "$1"'
    process = subprocess.Popen(["unshare", "--mount", "sh", "-c", enter, root, f"127.0.0.1:{port}"], env={"KOBOSHI_CONFIG": "/etc/koboshi/koboshi.yaml", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, stderr=subprocess.DEVNULL)
    try:
        check("its root, read-only, as its user: it answers", is_healthy(port) and chat(port, "sim/ok"))
        process.terminate()
        check("SIGTERM ends it with status 0", until(lambda: process.poll() is not None) and process.returncode == 0, process.returncode)
    finally:
        process.kill()
