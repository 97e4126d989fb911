// Every portable kernel as the web build has it: Dawn reads its text and makes the pipeline, on a device that
// computes nothing, so that no driver compiles it too; tests/web does that with what it runs.
// Arguments: the folder with kernels.json, the folder with NAME.wgsl. Prints TAP.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages are in the build folder, which is the one this runs in.
const packages = createRequire(join(process.cwd(), "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)).href);
const { create, globals } = await load("webgpu");
Object.assign(globalThis, globals);

const [spirvFolder, wgslFolder] = process.argv.slice(2);
const kernels = JSON.parse(readFileSync(join(spirvFolder, "kernels.json"), "utf8"));

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

globalThis.gpu = create(["backend=null"]); // kept: the device does not keep it
const adapter = await globalThis.gpu.requestAdapter();
const device = await adapter.requestDevice({ requiredFeatures: ["shader-f16"] });
for (const kernel of kernels.filter((k) => k.portable)) {
  try {
    await compile(device, kernel, readFileSync(join(wgslFolder, `${kernel.name}.wgsl`), "utf8"));
    report(kernel, "as WGSL");
  } catch (error) {
    report(kernel, "as WGSL", error);
  }
}
console.log(`1..${number}`);
process.exit(failures > 0 ? 1 : 0);
