#!/usr/bin/env python3
"""Mail notices at a real SMTP server with TLS: they arrive, signed in and encrypted, once for each stage; a server without
TLS or with a certificate that is not trusted gets nothing.

    tests/notices/run.py target/debug/koboshi PYTHON_WITH_AIOSMTPD
"""

import email
import email.policy
import json
import logging
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import warnings

DEADLINE = 90
PASSWORD = "a-password-of-the-mail-server"


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
        time.sleep(0.1)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certificate(folder, name):
    """A certificate for localhost that signs itself, so that it can be trusted by name."""
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", key, "-out", cert, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-addext", "basicConstraints=critical,CA:FALSE"],
        check=True, stderr=subprocess.DEVNULL,
    )
    return key, cert


class Mailbox:
    """What came: sender, recipients, message, and whether the connection was encrypted and signed in."""

    def __init__(self):
        self.mails = []
        self.refused = set()

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        is_encrypted = session.ssl is not None or server.transport.get_extra_info("ssl_object") is not None
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, message, is_encrypted, session.authenticated))
        return "250 taken"


def servers(folder):
    from aiosmtpd.controller import Controller
    from aiosmtpd.smtp import AuthResult, SMTP

    class Starttls(Controller):
        def factory(self):
            return SMTP(self.handler, **self.SMTP_kwargs)

    class Implicit(Controller):
        """TLS from the first byte, as on port 465."""

    def check(server, session, envelope, mechanism, data):
        good = getattr(data, "login", b"") == b"koboshi" and getattr(data, "password", b"") == PASSWORD.encode()
        return AuthResult(success=good, handled=False)

    def context(name):
        key, cert = certificate(folder, name)
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(cert, key)
        return tls

    started = {}
    for name, options in {
        "good": {"tls_context": context("good"), "require_starttls": True, "authenticator": check, "auth_required": True},
        "untrusted": {"tls_context": context("untrusted"), "require_starttls": True},
        "plain": {},
    }.items():
        box = Mailbox()
        controller = Starttls(box, hostname="localhost", port=free_port(), **options)
        controller.start()
        started[name] = (box, controller.port)
    box = Mailbox()
    controller = Implicit(
        box, hostname="localhost", port=free_port(), ssl_context=context("implicit"), authenticator=check, auth_required=True,
        auth_require_tls=False,
    )
    controller.start()
    started["implicit"] = (box, controller.port)
    # One that takes connections and says nothing, and one that ends them.
    silent = socket.create_server(("127.0.0.1", free_port()))
    started["silent"] = (silent, silent.getsockname()[1])
    dropping = socket.create_server(("127.0.0.1", free_port()))
    threading.Thread(target=lambda: [dropping.accept()[0].close() for _ in iter(int, 1)], daemon=True).start()
    started["dropping"] = (dropping, dropping.getsockname()[1])
    # A mailbox that does not exist, while others do.
    box = Mailbox()
    box.refused = {"gone@example.com"}
    controller = Starttls(box, hostname="localhost", port=free_port(), tls_context=context("picky"), require_starttls=True)
    controller.start()
    started["picky"] = (box, controller.port)
    (folder / "all.pem").write_text("".join((folder / f"{name}.pem").read_text() for name in ("good", "implicit", "picky")))
    return started


def main():
    koboshi = pathlib.Path(sys.argv[1]).resolve()
    if len(sys.argv) > 2 and pathlib.Path(sys.executable) != pathlib.Path(sys.argv[2]):
        os.execv(sys.argv[2], [sys.argv[2], __file__, str(koboshi)])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # A handshake that the client ends is what is tested here.
        logging.disable(logging.CRITICAL)
        warnings.simplefilter("ignore")
        started = servers(folder)
        channel = lambda name, **more: {
            "kind": "mail", "server": f"localhost:{started[name][1]}", "from": "koboshi@example.com", "to": ["ops@example.com"],
            "timeout": "20s", **more,
        }
        signed_in = {"user": "koboshi", "password": PASSWORD}
        config = folder / "koboshi.yaml"
        config.write_text(json.dumps({
            "serve": {"listen": f"127.0.0.1:{free_port()}"},
            "providers": {"broken": {"kind": "sim"}},
            "routes": {"m": ["broken/auth-401", "sim/ok"]},
            "notify": {"group_wait": "0s", "settle": "0s", "channels": {
                "good": channel("good", language="ja", **signed_in),
                # One that hangs delays no other.
                "silent": channel("silent", timeout="1h"),
            }},
        }))
        tests = folder / "tests.yaml"
        tests.write_text(json.dumps({"notify": {"channels": {
            "good": channel("good", **signed_in),
            "wrong": channel("good", user="koboshi", password="wrong"),
            "untrusted": channel("untrusted"),
            "plain": channel("plain"),
            "open": channel("plain", tls="off"),
            "implicit": channel("implicit", tls="implicit", **signed_in),
            "silent": channel("silent", timeout="2s"),
            "dropping": channel("dropping"),
            "gone": {**channel("picky"), "to": ["gone@example.com"]},
            "some": {**channel("picky"), "to": ["gone@example.com", "ops@example.com"]},
        }}}))
        environment = {**os.environ, "SSL_CERT_FILE": str(folder / "all.pem")}

        def test(name):
            done = subprocess.run([koboshi, "notify", "test", name, "--config", tests, "--format", "json"], env=environment,
                                  capture_output=True, text=True, timeout=DEADLINE)
            assert PASSWORD not in done.stdout + done.stderr
            return done.returncode, json.loads(done.stdout)["why"]

        box = started["good"][0]
        assert test("good") == (0, None), test("good")
        sender, recipients, message, is_encrypted, is_signed_in = box.mails.pop()
        assert (sender, recipients) == ("koboshi@example.com", ["ops@example.com"])
        assert is_encrypted and is_signed_in
        assert "test notice" in message.get_content() and "good" in message["subject"], message
        for name, expected in {"wrong": "535", "untrusted": "certificate", "plain": "STARTTLS"}.items():
            code, why = test(name)
            assert code == 1 and expected in why, (name, code, why)
        assert test("open")[0] == 0
        assert len(started["plain"][0].mails) == 1, "only the channel that asks for no TLS"
        assert not started["untrusted"][0].mails and not box.mails
        assert test("implicit") == (0, None), test("implicit")
        mail = started["implicit"][0].mails.pop()
        assert mail[3] and mail[4], "encrypted and signed in"
        for name, expected in {"silent": "no answer within 2 s", "dropping": "", "gone": "550"}.items():
            code, why = test(name)
            assert code == 1 and why and expected in why, (name, code, why)

        # One wrong address keeps it from no one else, and is named.
        assert not started["picky"][0].mails
        code, why = test("some")
        assert code == 1 and "gone@example.com" in why and "ops@" not in why, (code, why)
        assert [mail[1] for mail in started["picky"][0].mails] == [["ops@example.com"]]

        log = open(folder / "log", "w")
        gateway = subprocess.Popen([koboshi, "serve", "--config", config, "--store", folder / "store.db"], stderr=log, env=environment)
        try:
            address = json.loads(config.read_text())["serve"]["listen"]
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()

            def ask():
                request = urllib.request.Request(f"http://{address}/v1/chat/completions", body, {"content-type": "application/json"})
                return urllib.request.urlopen(request, timeout=30).status == 200

            until("an answer", ask)
            until("a mail", lambda: box.mails)
            message = box.mails[0][2]
            assert "[重大]" in message["subject"] and "KBS-2001" in message["subject"], message["subject"]
            assert message["message-id"].startswith("<msg_") and message["message-id"].endswith("@example.com>")
            subject = message["subject"].split("KBS-2001: ")[1].split(" ")[0]
            assert f"koboshi resume {subject}" in message.get_content(), message.get_content()
            subprocess.run([koboshi, "resume", subject, "--store", folder / "store.db"], env=environment, check=True, stdout=subprocess.DEVNULL)
            until("the mail of the end", lambda: len(box.mails) > 1)
            assert "再び使えます" in box.mails[1][2]["subject"], box.mails[1][2]["subject"]
            assert box.mails[1][2]["message-id"] != message["message-id"]
            assert all(mail[3] and mail[4] for mail in box.mails)
        finally:
            gateway.terminate()
            gateway.wait()
    print("mail notices: all good")


if __name__ == "__main__":
    main()
