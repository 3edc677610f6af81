/** The package in a runtime without a page: every entry imports, and a session over a real socket answers. `ws` as an argument hands that one in. */
import { createSession, KoboshiError } from "@koboshi/client";
import { KoboshiErrorElement } from "@koboshi/client/display";
import "@koboshi/client/display/define";
import { KINDS } from "@koboshi/client/kinds";
import { RobustAgentClient } from "@koboshi/client/plain";
import { KoboshiErrorDisplay } from "@koboshi/client/react";
import { cutAt, FakeServer } from "@koboshi/client/testing";
import { WebSocketServer } from "ws";

const server = new FakeServer({ faults: [cutAt(4)], pieceMs: 2 });
const sockets = new WebSocketServer({ port: 0, host: "127.0.0.1", handleProtocols: () => "koboshi.v1" });
sockets.on("connection", (socket) => {
  const link = server.connect({ send: (text) => socket.send(text), close: (code) => (code === 1006 ? socket.terminate() : socket.close(code)) });
  socket.on("message", (data) => link.receive(String(data)));
  socket.on("close", () => link.closed());
});
await new Promise((resolve) => sockets.once("listening", resolve));
const url = `ws://127.0.0.1:${sockets.address().port}/v1/session`;
const given = process.argv[2] === "ws" ? { WebSocket: (await import("ws")).WebSocket } : {};
if (!given.WebSocket && !globalThis.WebSocket) throw new Error("this runtime needs the argument `ws`");
const session = createSession({ url, storage: null, ...given });
const { text } = await session.send("hello");
if (text !== "echo: hello" || ![KoboshiError, KoboshiErrorElement, KoboshiErrorDisplay, KINDS, RobustAgentClient].every(Boolean)) throw new Error(text);
session.close();
sockets.close();
console.log(`${process.versions.bun ? "bun" : process.versions.deno ? "deno" : "node"}: ok`);
