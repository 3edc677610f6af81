/** The client and the error handler as published for plain `/ws` connections, word for word. Only their example calls at the end are left out. */
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";

const read = (name) => readFileSync(new URL(name, import.meta.url), "utf8").split("// 使用例")[0];

export function publishedClasses(WebSocket, setTimeout = globalThis.setTimeout) {
  const handler = transformSync(read("error-handler.ts.txt"), { loader: "ts" }).code;
  return new Function("WebSocket", "setTimeout", `${read("client.js.txt")}\n${handler}\nreturn { RobustAgentClient, ErrorHandler };`)(WebSocket, setTimeout);
}
