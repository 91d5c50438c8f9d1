import fs from "node:fs";

fs.mkdirSync("dist", { recursive: true });
fs.copyFileSync("src/agent.mjs", "dist/agent.mjs");
