"""A WebSocket client that does no more than a measure needs: blocking, text frames, pings answered."""
import base64
import json
import os
import socket
import struct


class Session:
    """One connection to `/v1/session`. `hello` has been said, and the `session` frame is in `opened`."""

    def __init__(self, port, client, **hello):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /v1/session HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
                             f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\nsec-websocket-protocol: koboshi.v1\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"not upgraded: {head[:200]!r}")
        self.buffer = bytearray(rest)
        self.hello = {"type": "hello", "v": 1, "client": client, "lang": "en", "can": ["rewind", "tools"], **hello}
        self.opened = None

    def open(self):
        self.send(self.hello)
        self.opened = self.frame()
        if self.opened["type"] != "session":
            raise RuntimeError(f"refused: {self.opened}")
        return self

    def send(self, frame):
        self._send(0x1, json.dumps(frame).encode())

    def _send(self, opcode, payload):
        # The mask is zero: it hides nothing on a loopback, and costs nothing.
        if len(payload) < 126:
            length = struct.pack("!B", 0x80 | len(payload))
        else:
            length = struct.pack("!BH", 0x80 | 126, len(payload)) if len(payload) < 65536 else struct.pack("!BQ", 0x80 | 127, len(payload))
        self.socket.sendall(bytes([0x80 | opcode]) + length + bytes(4) + payload)

    def _more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise RuntimeError("the gateway closed the connection")
        self.buffer += piece

    def text(self):
        """The next text frame."""
        while True:
            while len(self.buffer) < 2:
                self._more()
            opcode, length, start = self.buffer[0] & 0xF, self.buffer[1] & 0x7F, 2
            if length >= 126:
                size, form = (2, "!H") if length == 126 else (8, "!Q")
                start = 2 + size
                while len(self.buffer) < start:
                    self._more()
                (length,) = struct.unpack_from(form, self.buffer, 2)
            while len(self.buffer) < start + length:
                self._more()
            payload = bytes(self.buffer[start:start + length])
            del self.buffer[:start + length]
            if opcode == 0x1:
                return payload
            if opcode == 0x9:
                self._send(0xA, payload)
            if opcode == 0x8:
                raise RuntimeError(f"closed: {payload!r}")

    def frame(self):
        return json.loads(self.text())

    def until(self, kind):
        while True:
            frame = self.frame()
            if frame["type"] == kind:
                return frame
            if frame["type"] == "error":
                raise RuntimeError(f"an error: {frame}")

    def tend(self):
        """Answers the pings that wait here."""
        while True:
            self.socket.setblocking(False)
            try:
                piece = self.socket.recv(4096)
            except BlockingIOError:
                return
            finally:
                self.socket.settimeout(20)
            if not piece:
                raise RuntimeError("the gateway closed the connection")
            self.buffer += piece
            while len(self.buffer) >= 2 and len(self.buffer) >= 2 + (self.buffer[1] & 0x7F):
                opcode, end = self.buffer[0] & 0xF, 2 + (self.buffer[1] & 0x7F)
                if opcode == 0x9:
                    self._send(0xA, bytes(self.buffer[2:end]))
                del self.buffer[:end]

    def close(self):
        self.socket.close()
