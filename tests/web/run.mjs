// Runs cases.mjs in Node with Dawn on a Vulkan device, and in headless Chromium with its software adapter.
// Arguments: the package's folder, the models' folder, node_modules. Prints TAP.
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [packageFolder, modelFolder, nodeModules] = process.argv.slice(2).map((path) => resolve(path));
const find = createRequire(join(nodeModules, "..", "package.json"));
const load = (name) => import(pathToFileURL(find.resolve(name)).href);
const here = new URL(".", import.meta.url).pathname;

let number = 0;
let failures = 0;
function report(where, name, problem, seconds = 0) {
  number += 1;
  failures += problem ? 1 : 0;
  console.log(`${problem ? "not ok" : "ok"} ${number} - ${where}: ${name} (${seconds.toFixed(1)} s)`);
  if (problem) console.log(`#   ${problem}`);
}

async function inNode() {
  const { create, globals } = await load("webgpu");
  Object.assign(globalThis, globals);
  const gpu = create(["backend=vulkan"]);
  if (!(await gpu.requestAdapter())) {
    console.log(`ok ${++number} - node # SKIP Dawn finds no Vulkan device`);
    return;
  }
  const { OneModel } = await import(pathToFileURL(join(packageFolder, "onemodel.mjs")).href);
  const { runAll } = await import("./cases.mjs");
  const model = (file) => readFileSync(join(modelFolder, file));
  await runAll({ OneModel, gpu, model }, (...what) => report("node", ...what));
}

const kinds = { ".html": "text/html", ".mjs": "text/javascript", ".wasm": "application/wasm" };
const page = `<!doctype html><title>tests</title><script type="module">
  import { OneModel } from "/package/onemodel.mjs";
  import { runAll } from "/cases.mjs";
  const model = (file) => "/models/" + file;
  window.runTests = () => runAll({ OneModel, gpu: navigator.gpu, model }, window.report);
  window.isReady = true;
</script>`;

// The page, the package and the models, on loopback alone.
function serve() {
  const folders = { package: packageFolder, models: modelFolder };
  const server = createServer((request, response) => {
    const [, folder, name] = request.url.split("/");
    let path = folders[folder] && name && !name.includes("..") ? join(folders[folder], name) : null;
    if (request.url === "/cases.mjs") path = join(here, "cases.mjs");
    if (request.url === "/") {
      response.writeHead(200, { "content-type": "text/html" }).end(page);
    } else if (path && existsSync(path)) {
      const head = { "content-type": kinds[extname(path)] ?? "application/octet-stream", "content-length": statSync(path).size };
      createReadStream(path).pipe(response.writeHead(200, head));
    } else {
      response.writeHead(404).end();
    }
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

async function inChromium() {
  const { chromium } = (await load("playwright-core")).default;
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
  if (!executablePath) {
    console.log(`ok ${++number} - chromium # SKIP there is no Chromium`);
    return;
  }
  const profile = mkdtempSync(join(tmpdir(), "onemodel-chromium-"));
  const server = await serve();
  // Its own defaults keep the software adapter away.
  const context = await chromium.launchPersistentContext(profile, {
    executablePath, ignoreDefaultArgs: true, timeout: 120000,
    args: ["--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader",
           "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"],
  });
  try {
    const tab = await context.newPage();
    tab.on("pageerror", (error) => console.log(`# page: ${error.message}`));
    tab.on("console", (message) => console.log(`# console: ${message.text().split("\n")[0].slice(0, 300)}`));
    await tab.exposeFunction("report", (...what) => report("chromium", ...what));
    await tab.goto(`http://127.0.0.1:${server.address().port}/`);
    await tab.waitForFunction(() => window.isReady, null, { timeout: 60000 });
    await tab.evaluate(() => window.runTests());
  } finally {
    await context.close();
    server.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

for (const where of [inChromium, inNode]) {
  try {
    await where();
  } catch (error) {
    report(where.name, "runs", error.message.split("\n")[0]);
  }
}
console.log(`1..${number}`);
process.exit(failures > 0 ? 1 : 0);
