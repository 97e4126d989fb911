// Arguments: a folder to work in, which has node_modules; the text recognition models' folder; options as
// tools/gpu_browser has them. Prints Markdown.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inflateRawSync } from "node:zlib";
import { withChromium } from "../../tests/web/chromium.mjs";
import { encoder, residual, uniform } from "../../tests/web/onnx.mjs";

const here = fileURLToPath(new URL(".", import.meta.url)), root = join(here, "../..");
const [work, ocr, ...rest] = process.argv.slice(2);
const options = {
  "--package": join(root, "build/web/package"), "--onemodel": join(root, "build/release/onemodel"), "--runs": "5",
  "--models": "classifier,recogniser,detector,minilm,resnet50", "--engines": "webgpu,cpu,ort-webgpu,ort-wasm",
  "--size": "small",
};
for (let i = 0; i < rest.length; i += 2) {
  if (!(rest[i] in options) || i + 1 === rest.length) throw new Error(`What is '${rest[i]}'?`);
  options[rest[i]] = rest[i + 1];
}
const models = join(work, "models");
mkdirSync(models, { recursive: true });

const isFull = options["--size"] === "full";
if (!isFull && options["--size"] !== "small") throw new Error(`Sizes are small and full, not '${options["--size"]}'.`);

const picture = (dims) => ({ x: { dtype: "float32", dims } });
const words = isFull ? 128 : 32, side = isFull ? 224 : 64;
const catalogue = {
  classifier: { file: "ch_ppocr_mobile_v2.0_cls_infer.onnx", inputs: picture([1, 3, 48, 192]) },
  recogniser: { file: "ch_PP-OCRv4_rec_infer.onnx", inputs: picture([1, 3, 48, 320]) },
  detector: { file: "ch_PP-OCRv4_det_infer.onnx", inputs: picture(isFull ? [1, 3, 320, 320] : [1, 3, 160, 160]) },
  minilm: { make: () => encoder({ length: words }), inputs: { ids: { dtype: "int64", dims: [1, words] } } },
  resnet50: { make: () => residual({ side }), inputs: picture([1, 3, side, side]) },
};

// ---- Files of numbers ----

function values({ dtype, dims }) {
  const random = uniform(7), count = dims.reduce((a, b) => a * b, 1);
  if (dtype === "float32") return Float32Array.from({ length: count }, random);
  return BigInt64Array.from({ length: count }, () => BigInt(Math.floor(Math.abs(random()) * 1000)));
}

function npy({ dtype, dims }, data) {
  const head = `{'descr': '${dtype === "float32" ? "<f4" : "<i8"}', 'fortran_order': False, 'shape': (${dims.join(", ")},), }`;
  const padded = head.padEnd(Math.ceil((head.length + 11) / 64) * 64 - 11) + "\n";
  return Buffer.concat([Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, padded.length & 255, padded.length >> 8]),
                        Buffer.from(padded), Buffer.from(data.buffer)]);
}

// The bytes behind the head of the first array of an .npz.
function firstOf(path) {
  const file = readFileSync(path), end = file.lastIndexOf("PK\x05\x06", "latin1"), entry = file.readUInt32LE(end + 16);
  const method = file.readUInt16LE(entry + 10), bytes = file.readUInt32LE(entry + 20), at = file.readUInt32LE(entry + 42);
  const begin = at + 30 + file.readUInt16LE(at + 26) + file.readUInt16LE(at + 28);
  const packed = file.subarray(begin, begin + bytes);
  const array = method === 0 ? packed : inflateRawSync(packed);
  return array.subarray(10 + array.readUInt16LE(8));
}

// ---- The desktop ----

function desktop(...words) {
  try {
    return { text: execFileSync(options["--onemodel"], words, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] }) };
  } catch (error) {
    return { problem: (error.stderr || error.message).trim().split("\n").at(-1) };
  }
}

// Writes the model, its inputs and the desktop's exact results; gives the desktop's own run on its GPU.
function prepare(name) {
  const { file, make, inputs } = catalogue[name];
  const path = join(models, `${name}.onnx`), feeds = [];
  if (make) writeFileSync(path, make());
  else copyFileSync(join(ocr, file), path);
  for (const [input, tensor] of Object.entries(inputs)) {
    const data = values(tensor);
    tensor.file = `${name}.${input}.bin`;
    writeFileSync(join(work, tensor.file), Buffer.from(data.buffer));
    writeFileSync(join(work, `${name}.${input}.npy`), npy(tensor, data));
    feeds.push("--input", `${input}=${join(work, `${name}.${input}.npy`)}`);
  }
  const out = join(work, `${name}.npz`);
  const { problem } = desktop("run", path, ...feeds, "--device", "cpu", "--mode", "exact", "--out", out);
  if (problem) throw new Error(problem);
  writeFileSync(join(work, `${name}.exact.bin`), firstOf(out));
  writeFileSync(join(work, `${name}.json`), JSON.stringify({ inputs, exact: `${name}.exact.bin` }));
  return onDesktop(path, feeds);
}

// The same facts as page.mjs gives of a browser's run; the bits of its runs are for the tests.
function onDesktop(path, feeds) {
  const strict = desktop("compare", path, ...feeds, "--device", "gpu", "--require-gpu", "--json");
  const bench = desktop("bench", path, ...feeds, "--device", "gpu", "--runs", options["--runs"], "--json");
  if (strict.problem || bench.problem) return { problem: strict.problem ?? bench.problem };
  const [{ scaled_error: error }] = JSON.parse(strict.text);
  const { device, wall_ms: { median, min, max }, create_ms: create, first_run_ms: first } = JSON.parse(bench.text);
  return { device, error, required: "kept", warm: median, least: min, most: max, firstResult: create + first };
}

// ---- The browser ----

async function inBrowser(name, engine) {
  let result = null;
  const folders = { "": here, package: options["--package"], work, models, ort: join(work, "node_modules/onnxruntime-web/dist") };
  await withChromium(join(work, "node_modules"), true, folders, async (tab, address) => {
    await tab.goto(`${address}page.html?engine=${engine}&model=${name}&runs=${options["--runs"]}`);
    await tab.waitForFunction(() => window.result, null, { timeout: 1200000 });
    result = await tab.evaluate(() => window.result);
  });
  return result;
}

const ms = (value) => value >= 100 ? value.toFixed(0) : value.toFixed(1);

function row(name, engine, r) {
  if (r.problem) return `| ${name} | ${engine} | ${r.problem.split("\n")[0]} | | | | | |`;
  const regions = r.regions === 1 ? "1 region" : `${r.regions} regions`;
  const cells = [
    name, engine, r.error.toExponential(1), r.onDevice === undefined ? "" : `${r.onDevice} device, ${r.onCpu} CPU, ${regions}`,
    r.required ?? "", r.repeats === undefined ? "" : r.repeats ? "yes" : "no",
    `${ms(r.warm)} (${ms(r.least)}..${ms(r.most)})`, ms(r.firstResult)];
  return `| ${cells.join(" | ")} |`;
}

const devices = new Map();
console.log("| model | engine | scaled error | placement | require_gpu | repeats | warm ms (least..most) | page to first result ms |");
console.log("| --- | --- | --- | --- | --- | --- | --- | --- |");
for (const name of options["--models"].split(",")) {
  const show = (engine, result) => {
    if (result.device) devices.set(engine, result.device);
    console.log(row(name, engine, result));
  };
  show("desktop GPU", prepare(name));
  for (const engine of options["--engines"].split(",")) show(engine, await inBrowser(name, engine));
}
console.log(`\n${cpus()[0].model}, ${cpus().length} cores, ${options["--runs"]} warm runs.`);
for (const [engine, device] of devices) console.log(`${engine}: ${device}.`);
