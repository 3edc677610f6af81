/** Builds the page into `built/` (or into the folder that is named): what is checked in and embedded in the binary. */
import { copyFileSync, mkdirSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2] ?? "built";
mkdirSync(out, { recursive: true });
const shared = { bundle: true, minify: true, charset: "utf8", legalComments: "inline", logLevel: "warning", target: ["chrome123", "firefox120", "safari17.5"] };
await build({ ...shared, entryPoints: ["src/main.tsx"], outfile: `${out}/dashboard.js`, format: "esm", jsx: "automatic", jsxImportSource: "preact" });
await build({ ...shared, entryPoints: ["src/style.css"], outfile: `${out}/dashboard.css` });
for (const file of ["index.html", "icon.svg"]) copyFileSync(`src/${file}`, `${out}/${file}`);
