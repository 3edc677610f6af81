/** What a page pays, minified and gzipped: at most 8 kB for the whole client, 5 kB for the display and 2 kB for the shells of plain clients. */
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const LIMITS = [
  ["the client", 'export * from "./dist/index.js"', 8_000],
  ["the shells of plain clients", 'export * from "./dist/plain.js"', 2_000],
  ["the display", 'import "./dist/display/define.js"', 5_000],
];
for (const [what, contents, limit] of LIMITS) {
  const { outputFiles } = await build({ stdin: { contents, resolveDir: process.cwd() }, bundle: true, minify: true, write: false, format: "esm", target: "es2022", charset: "utf8" });
  const size = gzipSync(outputFiles[0].contents, { level: 9 }).length;
  console.log(`${what}: ${size} bytes of ${limit}`);
  if (size > limit) process.exitCode = 1;
}
