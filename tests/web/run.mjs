// Runs cases.mjs and the operators' tests in Node with Dawn on a Vulkan device, and in headless Chromium with its
// software adapter; and uses the example's page there, with WebGPU and without.
// Arguments: the package's folder, the models' folder, node_modules, what Vite made of vite/main.js, the operator
// tests' folder. Prints TAP, whose lines have no numbers: Node and the browsers run side by side, each in a process
// of its own, which has "node" or "browser" behind the arguments.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { importer, withChromium } from "./chromium.mjs";
import { runOpTests } from "./op_tests.mjs";

const [packageFolder, modelFolder, nodeModules, bundleFolder, opTests] =
  process.argv.slice(2, 7).map((path) => resolve(path));
const part = process.argv[7];
const load = importer(nodeModules);
const here = fileURLToPath(new URL(".", import.meta.url)), root = join(here, "../.."), examples = join(root, "examples/web");

// A part of the operators' cases: software devices take long to make kernels, the browser's above all.
const each = (usual) => process.env.ONEMODEL_WEB_EACH ?? String(usual);
const nodeOptions = ["--backend", "webgpu_shared", "--each", each(40)];
const chromiumOptions = ["--backend", "webgpu,webgpu_exact", "--each", each(100)];

let failures = 0;
function report(where, name, problem, seconds = 0, note = undefined) {
  failures += problem ? 1 : 0;
  console.log(`${problem ? "not ok" : "ok"} - ${where}: ${name} (${seconds.toFixed(1)} s)`);
  if (problem ?? note) console.log(`#   ${problem ?? note}`);
}

async function inNode() {
  const { create, globals } = await load("webgpu");
  Object.assign(globalThis, globals);
  const gpu = create(["backend=vulkan"]);
  if (!(await gpu.requestAdapter())) {
    console.log("ok - node # SKIP Dawn finds no Vulkan device");
    return;
  }
  const address = pathToFileURL(join(packageFolder, "onemodel.mjs")).href;
  const { OneModel } = await import(address);
  const anew = async () => (await import(`${address}?${performance.now()}`)).OneModel;
  const { cases, largeCases, runAll } = await import("./cases.mjs");
  const model = (file) => readFileSync(join(modelFolder, file));
  // The browser has these two; a driver that takes minutes to compile their kernels need not.
  const { "the recogniser matches the CPU": _, "the detector matches the CPU": __, ...list } = cases;
  await runAll({ OneModel, gpu, model, anew }, (...what) => report("node", ...what), list);
  await runAll({ gpu, anew }, (...what) => report("node", ...what), largeCases);
  const { default: createModule } = await import(pathToFileURL(join(opTests, "onemodel_op_tests.mjs")).href);
  await runOpTests(createModule, gpu, nodeOptions, (...what) => report("operators in node", ...what));
}

async function browse(hasGpu, folders, work) {
  if (await withChromium(nodeModules, hasGpu, { models: modelFolder, ...folders }, work)) return;
  console.log("ok - chromium # SKIP there is no Chromium");
}

async function inChromium() {
  await browse(true, { package: packageFolder, tests: here, optests: opTests }, async (tab, address) => {
    await tab.exposeFunction("report", report);
    await tab.goto(`${address}tests/cases.html`);
    await tab.waitForFunction(() => window.isReady, null, { timeout: 60000 });
    await tab.evaluate(() => window.runTests());
    await tab.evaluate((options) => window.runOpTests(options), chromiumOptions);
  });
}

// As a user would: choose a picture, read what the page says.
async function usePage(tab, address, device) {
  const begin = performance.now();
  const wait = { timeout: 600000 };
  await tab.goto(address);
  await tab.waitForFunction(() => !document.getElementById("file").disabled, null, wait);
  const loaded = await tab.textContent("#status");
  await tab.setInputFiles("#file", join(root, "examples/ocr/samples/label.jpg"));
  await tab.waitForSelector("[data-fact=Placement]", wait);
  const facts = await tab.textContent("#facts");
  const status = await tab.textContent("#status");
  const problem = await tab.textContent("#problem");
  const found = Number(status.split(" ")[0]);
  let wrong = null;
  if (problem) wrong = problem;
  else if (!(found >= 3)) wrong = `the page says: ${status}`;
  else if (!loaded.includes(device)) wrong = `the page says: ${loaded}`;
  else if (!facts.includes("Placement")) wrong = `the page says: ${facts}`;
  await tab.setInputFiles("#file", { name: "no.png", mimeType: "image/png", buffer: Buffer.from("no picture") });
  await tab.waitForFunction(() => document.getElementById("problem").textContent, null, wait);
  return [wrong, (performance.now() - begin) / 1e3];
}

async function thePage() {
  const folders = { "": examples, package: packageFolder, example: join(packageFolder, "../example") };
  await browse(true, folders, async (tab, address) => {
    report("page", "finds text on WebGPU", ...(await usePage(tab, address, "It runs on google")));
  });
  await browse(false, folders, async (tab, address) => {
    report("page", "finds text without WebGPU and says so", ...(await usePage(tab, address, "on the CPU: ")));
  });
}

async function theBundle() {
  await browse(false, { "": bundleFolder, assets: join(bundleFolder, "assets") }, async (tab, address) => {
    await tab.goto(address);
    await tab.waitForFunction(() => document.getElementById("out").textContent, null, { timeout: 60000 });
    const text = await tab.textContent("#out");
    report("bundle", "runs a model", text === "2 results, sum 1.000" ? null : `the page says: ${text}`);
  });
}

function thePackage() {
  for (const file of ["onemodel_wasm.wasm", "onemodel_wasm_threads.wasm"]) {
    const bytes = readFileSync(join(packageFolder, file)), packed = gzipSync(bytes).length;
    const isSmall = bytes.length <= 5e6 && packed <= 1.5e6;
    report("package", `${file} is small`, isSmall ? null : `it has ${bytes.length} bytes, packed ${packed}`);
  }
}

// Runs one part in a process of its own; its exit code.
const apart = (name) => new Promise((done) => {
  spawn(process.execPath, [...process.argv.slice(1, 7), name], { stdio: "inherit" }).on("exit", (code) => done(code ?? 1));
});

const parts = { node: [inNode], browser: [thePackage, inChromium, thePage, theBundle] };
if (!part) {
  const codes = await Promise.all(Object.keys(parts).map(apart));
  process.exit(Math.max(...codes));
}
for (const where of parts[part]) {
  try {
    await where();
  } catch (error) {
    report(where.name, "runs", error.message.split("\n")[0]);
  }
}
process.exit(failures > 0 ? 1 : 0);
