"""The real coding agents: how each is pointed at a gateway, given a task, and read.

A fresh home folder, nothing sent elsewhere, no questions asked. What each prints, needs and does under faults is said where it is used.
"""
import json
import re


class Claude:
    name, dialect = "claude", "messages"
    package = "@anthropic-ai/claude-code"
    time = r"try again (in \d+|after \d{4}-\d\d-\d\d \d\d:\d\d)"

    def prepare(self, home, url, model, key):
        # As root it refuses to run without questions unless it is told that it is in a sandbox.
        return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key, "ANTHROPIC_MODEL": model, "ANTHROPIC_SMALL_FAST_MODEL": model, "IS_SANDBOX": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1"}

    def command(self, prompt):
        return ["claude", "-p", prompt, "--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose", "--max-turns", "10"]

    def read(self, out):
        """Whether it says that it is done, and what it says at the end. Its word `subtype` is `success` also for errors."""
        last = next((event for event in events(out) if event.get("type") == "result"), {})
        return last.get("is_error") is False and bool(last.get("result")), str(last.get("result"))


class Codex:
    name, dialect = "codex", "responses"
    package = "@openai/codex"
    # Local time, without a zone.
    time = r"[Tt]ry again at .*\d:\d\d [AP]M"

    def prepare(self, home, url, model, key):
        folder = home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(f'''
model = "{model}"
model_provider = "koboshi"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.koboshi]
name = "Koboshi"
base_url = "{url}/v1"
env_key = "KOBOSHI_KEY"
wire_api = "responses"
''')
        return {"CODEX_HOME": str(folder), "KOBOSHI_KEY": key}

    def command(self, prompt):
        return ["codex", "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt]

    def read(self, out):
        ends = [event for event in events(out) if event.get("type") in ("turn.completed", "turn.failed")]
        said = [event["item"]["text"] for event in events(out) if event.get("type") == "item.completed" and event["item"].get("type") == "agent_message"]
        failed = [event["error"]["message"] for event in ends if event["type"] == "turn.failed"]
        return bool(ends) and not failed and bool(said), " ".join(failed or said)


class Gemini:
    name, dialect = "gemini", "gemini"
    package = "@google/gemini-cli"
    time = r"Suggested retry after \d+s"

    def prepare(self, home, url, model, key):
        folder = home / ".gemini"
        folder.mkdir()
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
                    "general": {"enableAutoUpdate": False}}
        (folder / "settings.json").write_text(json.dumps(settings))
        return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": key, "GEMINI_MODEL": model, "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def command(self, prompt):
        return ["gemini", "-p", prompt, "--yolo", "-o", "stream-json"]

    def read(self, out):
        """Its exit code is 0 also for streams that broke: the last event counts."""
        last = next((event for event in events(out) if event.get("type") == "result"), {})
        said = "".join(event.get("content", "") for event in events(out) if event.get("type") == "message" and event.get("role") == "assistant")
        return last.get("status") == "success" and bool(said), said if last.get("status") == "success" else str(last.get("error", {}).get("message"))


CLIS = {cli.name: cli for cli in (Claude(), Codex(), Gemini())}


def prompt(file, text, command):
    """The task: the simulated provider finds the agent's own tools for it, calls one an answer, then says something about the last result (docs/sim.md)."""
    return f"Please do this:\nkoboshi: write {file} with {text}, then run `{command}`"


def events(out):
    """The JSON lines among what was printed."""
    for line in out.splitlines():
        if re.match(r"\s*\{", line):
            try:
                yield json.loads(line)
            except ValueError:
                continue
