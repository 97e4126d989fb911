// Every portable kernel as WGSL: naga translates the SPIR-V, Dawn compiles the text and makes the
// pipeline. Arguments: the folder with NAME.spv and kernels.json, the folder for NAME.wgsl.
// Prints TAP.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages are in the build folder, which is the one this runs in.
const packages = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)).href);
const { parseSpirv, validate, writeWgsl } = await load("naga-wasm");
const { create, globals } = await load("webgpu");
Object.assign(globalThis, globals);

const [spirvFolder, wgslFolder] = process.argv.slice(2);
const kernels = JSON.parse(readFileSync(join(spirvFolder, "kernels.json"), "utf8"));
mkdirSync(wgslFolder, { recursive: true });

function translate(kernel) {
  const module = parseSpirv(readFileSync(join(spirvFolder, `${kernel.name}.spv`)));
  try {
    const info = validate(module);
    const text = writeWgsl(module, info);
    info.free();
    return text;
  } finally {
    module.free();
  }
}

// What a translator may lose without a word.
function checkText(kernel, text) {
  const size = text.match(/@workgroup_size\((\d+),\s*(\d+),\s*(\d+)\)/);
  const found = size ? size.slice(1).map(Number) : [];
  if (found.join() !== kernel.size.join()) {
    throw new Error(`the workgroup size is ${found}, should be ${kernel.size}`);
  }
  const constants = (text.match(/@id\(\d+\) override /g) ?? []).length;
  if (constants > kernel.constants) throw new Error(`${constants} constants of ${kernel.constants}`);
  const buffers = new Set((text.match(/@group\(0\) @binding\(\d+\)\s+var<storage/g) ?? []));
  if (buffers.size !== kernel.bindings) {
    throw new Error(`${buffers.size} storage buffers of ${kernel.bindings}`);
  }
}

async function compile(device, kernel, text) {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: text });
  const { messages } = await module.getCompilationInfo();
  const errors = messages.filter((message) => message.type === "error");
  if (errors.length > 0) {
    await device.popErrorScope();
    throw new Error(errors.map((e) => `line ${e.lineNum}: ${e.message}`).join("\n"));
  }
  device.createComputePipeline({ layout: "auto", compute: { module } });
  const error = await device.popErrorScope();
  if (error) throw new Error(error.message);
}

let number = 0;
let failures = 0;
const report = (kernel, what, error) => {
  number += 1;
  if (error) failures += 1;
  console.log(`${error ? "not ok" : "ok"} ${number} - ${kernel.name} ${what}`);
  if (error) for (const line of String(error.formatted ?? error.message).split("\n").slice(0, 8)) console.log(`#   ${line}`);
};

const gpu = create(["backend=vulkan"]);
const adapter = await gpu.requestAdapter();
const features = adapter?.features.has("shader-f16") ? ["shader-f16"] : [];
const device = adapter && (await adapter.requestDevice({ requiredFeatures: features }));
for (const kernel of kernels.filter((k) => k.portable)) {
  try {
    const text = translate(kernel);
    writeFileSync(join(wgslFolder, `${kernel.name}.wgsl`), text);
    checkText(kernel, text);
    if (device) await compile(device, kernel, text);
    else console.log(`# ${kernel.name}: translated; there is no device to compile it for`);
    if (device) report(kernel, "as WGSL");
    else console.log(`ok ${++number} - ${kernel.name} as WGSL # SKIP no Vulkan device for Dawn`);
  } catch (error) {
    report(kernel, "as WGSL", error);
  }
}
console.log(`1..${number}`);
process.exit(failures > 0 ? 1 : 0);
