#!/usr/bin/env python3
"""The files of examples/observability in a real Prometheus: it accepts them, every query of the dashboard has data, and alerts
fire while a simulated provider fails.

    tests/observability/run.py target/debug/koboshi
"""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILES = ROOT / "examples" / "observability"
DEADLINE = 90
# Alerts that the failing provider below must raise, and one that must stay silent.
FIRES = {"KoboshiClientsSeeFailures", "KoboshiKeyOrAccountRefused", "KoboshiQuotaExceeded", "KoboshiBreakerOpen", "KoboshiNoticesDoNotArrive"}
SILENT = {"KoboshiDown", "KoboshiStoreUnreachable"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url, body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def until(what, poll):
    begun = time.monotonic()
    while True:
        try:
            found = poll()
        except OSError:
            found = None
        if found:
            return found
        if time.monotonic() - begun > DEADLINE:
            sys.exit(f"waited {DEADLINE} s without success: {what}")
        time.sleep(0.2)


def queries():
    """Every query of the dashboard, with the title of its panel."""
    dashboard = json.loads((FILES / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$instance", ".*")


def main():
    koboshi = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("prometheus"):
        print("installing prometheus", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "prometheus"],
            check=True, env={"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
    subprocess.run(["promtool", "check", "config", str(FILES / "prometheus.yml")], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        gateway, prometheus = free_port(), free_port()
        (folder / "koboshi.yaml").write_text(
            "routes:\n  good: [sim/ok]\n  down: [sim/fail-503]\n  dry: [sim/quota]\n  key: [sim/auth-401]\n"
            "notify: {group_wait: 0s, channels: {broken: {kind: command, command: ['false']}}}\n"
        )
        config = (FILES / "prometheus.yml").read_text()
        config = config.replace("127.0.0.1:4141", f"127.0.0.1:{gateway}").replace("15s", "1s")
        (folder / "prometheus.yml").write_text(config)
        # The rules as they are, but for their patience: minutes become seconds.
        rules = re.sub(r"for: (\d+)m", r"for: \1s", (FILES / "alerts.yml").read_text())
        (folder / "alerts.yml").write_text(rules)
        children = []
        try:
            children.append(subprocess.Popen(
                [koboshi, "serve", "--config", folder / "koboshi.yaml", "--listen", f"127.0.0.1:{gateway}", "--store", "memory"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            ))
            children.append(subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{prometheus}", "--log.level=error"],
            ))
            run(f"http://127.0.0.1:{gateway}", f"http://127.0.0.1:{prometheus}")
        finally:
            for child in children:
                child.terminate()
            for child in children:
                child.wait()


def run(gateway, prometheus):
    def ask(model):
        body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
        return fetch(f"{gateway}/v1/chat/completions", body)[0]

    def result(query):
        status, body = fetch(f"{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": query}))
        if status != 200:
            sys.exit(f"Prometheus refuses {query}: {body.decode()}")
        return json.loads(body)["data"]["result"]

    until("the gateway answers", lambda: ask("good") == 200)
    until("Prometheus has scraped the gateway once", lambda: result('up{job="koboshi"} == 1'))

    def fired():
        # Faults go on while Prometheus looks, so that rates have something to count. Three of the four routes fail.
        for model in ("good", "down", "dry", "key"):
            ask(model)
        alerts = json.loads(fetch(f"{prometheus}/api/v1/alerts")[1])["data"]["alerts"]
        return {alert["labels"]["alertname"]: alert for alert in alerts if alert["state"] == "firing"}

    def all_fired():
        now = fired()
        return now if set(now) >= FIRES else None

    seen = until(f"these alerts fire: {', '.join(sorted(FIRES))}", all_fired)
    wrong = SILENT & set(seen)
    if wrong:
        sys.exit(f"these alerts must not fire: {wrong}")
    for name, alert in seen.items():
        texts = alert["annotations"]
        if not texts.get("description") or "{{" in texts.get("summary", "{{") or "<no value>" in texts["summary"]:
            sys.exit(f"{name} has no usable text: {texts}")
    count = 0
    for title, query in queries():
        if not result(query):
            sys.exit(f"the panel «{title}» has no data: {query}")
        count += 1
    print(f"ok    {len(seen)} alerts fired, {count} queries of the dashboard have data")


if __name__ == "__main__":
    main()
