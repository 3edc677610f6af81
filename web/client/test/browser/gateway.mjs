/** A real gateway with its simulated provider, on a port and a store of its own, that can be stopped, killed and started again. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

export async function openGateway(binary) {
  const folder = mkdtempSync(join(tmpdir(), "koboshi-web-"));
  const address = `127.0.0.1:${await freePort()}`;
  let process_;
  const start = async () => {
    process_ = spawn(binary, ["serve", "--chat", "--lang", "en", "--listen", address, "--store", join(folder, "store.db")], { cwd: folder, env: { PATH: process.env.PATH, HOME: folder }, stdio: ["ignore", "ignore", "pipe"] });
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
  return {
    origin: `http://${address}`,
    socket: `ws://${address}`,
    start,
    stop,
    async close() {
      await stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
