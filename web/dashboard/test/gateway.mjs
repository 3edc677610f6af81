/** A real `koboshi serve` or `koboshi up` with a config of the test, that can be stopped and started again on its port and its store. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

export async function openGateway(binary, config, command = "serve", files = {}) {
  const folder = mkdtempSync(join(tmpdir(), "koboshi-dashboard-"));
  const address = `127.0.0.1:${await freePort()}`;
  const file = join(folder, "koboshi.yaml");
  const configure = (text) => writeFileSync(file, text);
  configure(config);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  let running;
  const start = async () => {
    let said = "";
    running = spawn(binary, [command, "--config", file, "--listen", address, "--store", join(folder, "store.db"), "--lang", "en"], { cwd: folder, env: { PATH: process.env.PATH, HOME: folder }, stdio: ["ignore", "ignore", "pipe"] });
    running.stderr.on("data", (data) => (said += data));
    for (let n = 0; n < 300; n++) {
      const answer = await fetch(`http://${address}/health`).catch(() => null);
      if (answer?.ok) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the gateway did not start: ${said}`);
  };
  const stop = async (signal = "SIGTERM") => {
    if (running.exitCode !== null || running.signalCode !== null) return;
    const ended = once(running, "exit");
    running.kill(signal);
    await ended;
  };
  await start();
  const origin = `http://${address}`;
  return {
    origin,
    folder,
    configure,
    start,
    stop,
    ended: () => (running.exitCode === null ? once(running, "exit") : Promise.resolve()),
    async chat(model, headers = {}) {
      const body = JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] });
      const answer = await fetch(`${origin}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json", ...headers }, body });
      await answer.text();
      return answer.status;
    },
    async close() {
      await stop(command === "up" ? "SIGTERM" : "SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
