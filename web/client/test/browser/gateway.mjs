/** A real gateway with its simulated provider, on a port and a store of its own, that can be stopped, killed and started again. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/** A way to the gateway whose connections can be killed: no close frame, no FIN, as when a network goes. */
async function openRelay(port) {
  const sockets = new Set();
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    for (const [one, other] of [[client, upstream], [upstream, client]]) {
      sockets.add(one);
      one.on("error", () => {}).on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
    relay.connections++;
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const relay = {
    connections: 0,
    port: server.address().port,
    kill: () => sockets.forEach((socket) => socket.resetAndDestroy()),
    close() {
      relay.kill();
      server.close();
    },
  };
  return relay;
}

export async function openGateway(binary, { config } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "koboshi-web-"));
  if (config) writeFileSync(join(folder, "koboshi.yaml"), config);
  const address = `127.0.0.1:${await freePort()}`;
  let process_;
  const start = async () => {
    process_ = spawn(binary, ["serve", "--chat", "--lang", "en", "--listen", address, "--store", join(folder, "store.db"), ...(config ? ["--config", join(folder, "koboshi.yaml")] : [])], { cwd: folder, env: { PATH: process.env.PATH, HOME: folder }, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    process_.stderr.on("data", (data) => (said += data));
    for (let n = 0; n < 200; n++) {
      const answer = await fetch(`http://${address}/health`).catch(() => null);
      if (answer?.ok) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the gateway did not start: ${said}`);
  };
  const stop = async (signal = "SIGTERM") => {
    const ended = once(process_, "exit");
    process_.kill(signal);
    await ended;
  };
  await start();
  const relay = await openRelay(address.split(":")[1]);
  return {
    relay,
    /** The same gateway behind the relay, under this machine's address and under a name that needs a network. */
    relayed: `http://127.0.0.1:${relay.port}`,
    elsewhere: `http://app.example:${relay.port}`,
    origin: `http://${address}`,
    socket: `ws://${address}`,
    start,
    stop,
    async close() {
      relay.close();
      await stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
