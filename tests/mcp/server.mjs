// A server of the official TypeScript SDK that says what is to be done with an agent: the word stands in a file.
import { readFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "coordinator", version: "1.0.0" });
server.registerTool(
  "get_agent_action",
  { description: "What is to be done with an agent", inputSchema: { agent_id: z.string(), project_id: z.string() } },
  async () => ({ content: [{ type: "text", text: JSON.stringify({ action: readFileSync(process.argv[2], "utf8").trim() }) }] }),
);
await server.connect(new StdioServerTransport());
