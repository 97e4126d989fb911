// Every portable kernel as WGSL, by naga. Arguments: the node_modules folder that has naga-wasm, the folder
// with NAME.spv and kernels.json (embed_shaders.py), the folder for NAME.wgsl. Fails on a kernel that
// naga cannot read, or that lost on the way what must not be lost without a word.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, spirvFolder, wgslFolder] = process.argv.slice(2);
const find = createRequire(join(resolve(packages), "..", "package.json"));
const { parseSpirv, validate, writeWgsl } = await import(pathToFileURL(find.resolve("naga-wasm")).href);

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

function check(kernel, text) {
  const size = text.match(/@workgroup_size\((\d+),\s*(\d+),\s*(\d+)\)/);
  const found = size ? size.slice(1).map(Number) : [];
  if (found.join() !== kernel.size.join()) {
    throw new Error(`the workgroup size is ${found}, should be ${kernel.size}`);
  }
  const constants = (text.match(/@id\(\d+\) override /g) ?? []).length;
  if (constants > kernel.constants) throw new Error(`${constants} constants of ${kernel.constants}`);
  const buffers = new Set(text.match(/@group\(0\) @binding\(\d+\)\s+var<storage/g) ?? []);
  if (buffers.size !== kernel.bindings) {
    throw new Error(`${buffers.size} storage buffers of ${kernel.bindings}`);
  }
}

let failures = 0;
mkdirSync(wgslFolder, { recursive: true });
for (const kernel of JSON.parse(readFileSync(join(spirvFolder, "kernels.json"), "utf8"))) {
  if (!kernel.portable) continue;
  try {
    const text = translate(kernel);
    check(kernel, text);
    writeFileSync(join(wgslFolder, `${kernel.name}.wgsl`), text);
  } catch (error) {
    failures += 1;
    console.error(`kernel ${kernel.name}: ${error.formatted ?? error.message}`);
  }
}
process.exit(failures > 0 ? 1 : 0);
