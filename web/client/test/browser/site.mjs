/** A site for the tests: files of this repository over HTTP, and a fake session server over real WebSockets. */
import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { extname, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { FakeServer } from "../../dist/testing/index.js";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".map": "application/json" };
// As strict as the gateway's.
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; img-src data:; base-uri 'none'; form-action 'none'";

export async function openSite(options = {}) {
  const fake = new FakeServer(options);
  const made = new Map();
  const http = createServer((request, response) => {
    const path = new URL(request.url, "http://x").pathname;
    const text = made.get(path);
    response.setHeader("content-type", TYPES[extname(path) || ".html"] ?? TYPES[".html"]);
    response.setHeader("content-security-policy", POLICY);
    if (text !== undefined) return response.end(text);
    if (path === "/v1/models") return response.setHeader("content-type", "application/json").end('{"data":[]}');
    const file = normalize(ROOT + (path.startsWith("/chat/") ? `examples${path}${path.endsWith("/") ? "index.html" : ""}` : path));
    createReadStream(file.startsWith(ROOT) ? file : "/dev/null").on("error", () => response.writeHead(404).end()).pipe(response);
  });
  const sockets = new Set();
  const server = new WebSocketServer({ server: http, handleProtocols: () => "koboshi.v1" });
  server.on("connection", (socket) => {
    if (fake.isDown) return socket.terminate();
    sockets.add(socket);
    const link = fake.connect({ send: (text) => socket.send(text), close: (code) => (code === 1006 ? socket.terminate() : socket.close(code)) });
    socket.on("message", (data) => link.receive(String(data)));
    socket.on("close", () => {
      sockets.delete(socket);
      link.closed();
    });
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  const { port } = http.address();
  return {
    fake,
    made,
    origin: `http://127.0.0.1:${port}`,
    elsewhere: `http://app.example:${port}`,
    close() {
      for (const socket of sockets) socket.terminate();
      server.close();
      http.closeAllConnections();
      http.close();
    },
  };
}
