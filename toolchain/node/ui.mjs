// Bundles the components of a graph configuration's `ui`: node ui.mjs REQUEST, in the directory of the configuration. Its
// last line on standard error says what is wrong.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { pathToFileURL } from "node:url";

const request = JSON.parse(await readFile(process.argv[2], "utf8"));
const cwd = process.cwd();
process.env.NODE_PATH = request.modules; // style sheets may import tailwindcss, which the bundler brings
const { build } = await import(pathToFileURL(join(request.modules, "@langchain", "langgraph-ui", "dist", "bundler.mjs")).href);

/** One sentence about what esbuild, its plugins or the file system object to. */
function sentence(name, file, error) {
  const first = error.errors?.[0];
  const text = String(first?.text ?? error.message ?? error).replaceAll(cwd + "/", "").split("\n")[0];
  const at = first?.location;
  const where = at && !at.file.startsWith("entrypoint-ns:") ? `${at.file}:${at.line}:${at.column + 1}` : posix.normalize(file);
  let remedy = "";
  if (/^Could not resolve "[^./]/.test(text)) remedy = "; add the package to package.json beside the configuration, or to ui_config.shared if the page brings it";
  if (/^No matching export .* for import "default"/.test(text)) remedy = "; export the components by name as the default: export default { card: Card }";
  return `Error in ui.${name}: ${where}: ${text}${remedy}`;
}

/** Comments of the bundler name files; those of this build's own directory would make every bundle another one. */
function withoutPaths(file) {
  if (!/\.(js|css)$/.test(file.basename)) return file.contents;
  return Buffer.from(Buffer.from(file.contents).toString("utf8").replaceAll(cwd + "/", ""), "utf8");
}

async function component(name, file, dir) {
  const files = await build(name, { userPath: file, cwd, config: { shared: request.shared ?? [] } });
  await mkdir(join(request.out, dir), { recursive: true });
  const built = [];
  for (const each of files) {
    const contents = withoutPaths(each);
    await writeFile(join(request.out, dir, each.basename), contents);
    built.push({ name: each.basename, sha256: createHash("sha256").update(contents).digest("hex") });
  }
  return { dir: posix.join("ui", dir), files: built.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

const answer = [];
// A directory has a number for its name: names of components are not always those of files.
for (const [n, name] of Object.keys(request.ui).sort().entries()) {
  try {
    answer.push([name, await component(name, request.ui[name], String(n))]);
  } catch (error) {
    console.error(sentence(name, request.ui[name], error));
    process.exit(1);
  }
}
await writeFile(request.answer, JSON.stringify(Object.fromEntries(answer)));
