// What must hold of the package, in a browser and in Node with Dawn: this file runs in both.
import { encoder, fromHalf, Graph, residual, toHalf, uniform } from "./onnx.mjs";

//
// `world` is {OneModel, gpu, model, anew}: the package's class, the page's WebGPU (Dawn's in Node), where a model's
// file is (an address or its bytes), and a function that gives the class with WebAssembly memory of its own.

function check(condition, message) {
  if (!condition) throw new Error(message);
}

async function rejects(promise, code, words) {
  try {
    await promise;
  } catch (error) {
    check(error.code === code, `the code is ${error.code}, should be ${code}: ${error.message}`);
    check(error.message.includes(words), `'${error.message}' does not say '${words}'`);
    return;
  }
  throw new Error(`nothing was rejected; it should be ${code}`);
}

function picture(dims) {
  return { dims, data: Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, uniform(1)) };
}

function scaledError(a, b) {
  let worst = 0, most = 0;
  for (let i = 0; i < b.length; ++i) {
    worst = Math.max(worst, Math.abs(a[i] - b[i]));
    most = Math.max(most, Math.abs(b[i]));
  }
  return worst / most;
}

const hasSameBits = (a, b) => a.length === b.length && a.every((value, i) => Object.is(value, b[i]));

const classifier = "ch_ppocr_mobile_v2.0_cls_infer.onnx";
const recogniser = "ch_PP-OCRv4_rec_infer.onnx";
const detector = "ch_PP-OCRv4_det_infer.onnx";

async function only(model, x, name = "x") {
  const y = await model.run({ [name]: x });
  return Object.values(y)[0];
}

const floats = ({ dtype, data }) => dtype === "float16" ? Float32Array.from(data, fromHalf) : data;

// On the device as one region, near the CPU's exact mode, twice with the same bits.
async function matchesTheCpu(world, source, x, { name = "x", limit = 1e-5, gpu = world.gpu } = {}) {
  const cpu = await world.OneModel.load(source, { device: "cpu", mode: "exact" });
  const wanted = await only(cpu, x, name);
  await cpu.dispose();
  const model = await world.OneModel.load(source, { device: "gpu", requireGpu: true, gpu });
  const [first, second] = [await only(model, x, name), await only(model, x, name)];
  const { nodes, regions } = await model.diagnose({ [name]: x });
  await model.dispose();
  const error = scaledError(floats(first), floats(wanted));
  check(error <= limit, `the scaled error is ${error}`);
  check(first.dims.join() === wanted.dims.join(), `the shape is ${first.dims}, should be ${wanted.dims}`);
  check(hasSameBits(first.data, second.data), "two runs differ");
  check(regions === 1, `there are ${regions} regions`);
  check(nodes.every(({ place }) => place !== "cpu"), "a node is on the CPU");
}

// WebGPU whose adapters lack a feature, or have limits of the page's own; `made` gets each device.
function changed(gpu, { without = [], limits = {}, made = () => {} }) {
  const within = (real) => new Proxy(real, { get: (_, name) => limits[name] ?? real[name] });
  return {
    requestAdapter: async (options) => {
      const adapter = await gpu.requestAdapter(options);
      const features = new Set([...adapter.features].filter((feature) => !without.includes(feature)));
      return {
        features, info: adapter.info,
        limits: within(adapter.limits),
        requestDevice: async (wanted) => {
          const device = await adapter.requestDevice(wanted);
          Object.defineProperty(device, "limits", { value: within(device.limits) });
          made(device);
          return device;
        },
      };
    },
  };
}

const words = { dtype: "int64", dims: [1, 24], data: BigInt64Array.from({ length: 24 }, (_, i) => BigInt((i * 37) % 200)) };
const smallEncoder = (options) => encoder({ width: 96, heads: 4, layers: 2, words: 200, length: 24, ...options });
const smallResidual = (options) => residual({ width: 8, counts: [1, 1, 1, 1], side: 48, ...options });
const halves = ({ dims, data }) => ({ dtype: "float16", dims, data: Uint16Array.from(data, toHalf) });

// y = x w0 w1 ... for x of one row, where column c of matrix i is column(i, c) / width throughout: what comes out of
// each product is the mean of what goes in, times column(i, c). `matrices` gives each matrix when it is asked for.
function means(width, count) {
  const column = (i, c) => 0.5 + ((c * 7 + i * 13) % 16) / 16;
  const g = new Graph(), bytes = 4 * width * width;
  let y = g.input("x", [1, width]);
  for (let i = 0; i < count; ++i) y = g.node("MatMul", [y, g.stored([width, width], "weights.bin", i * bytes, bytes)]);
  g.node("Identity", [y], {}, ["y"]);
  g.output("y", [1, width]);
  const matrix = (i) => {
    const row = Float32Array.from({ length: width }, (_, c) => column(i, c) / width), all = new Float32Array(width * width);
    for (let r = 0; r < width; ++r) all.set(row, r * width);
    return all;
  };
  const x = { dims: [1, width], data: new Float32Array(width).fill(3) };
  let wanted = x.data;
  for (let i = 0; i < count; ++i) {
    const mean = wanted.reduce((a, b) => a + b, 0) / width;
    wanted = Float64Array.from({ length: width }, (_, c) => column(i, c) * mean);
  }
  const body = (end = count) => {
    let i = 0;
    return new ReadableStream({
      pull: (stream) => {
        if (i < end) stream.enqueue(new Uint8Array(matrix(i++).buffer));
        else if (end < count) stream.error(new Error("the line is gone"));
        else stream.close();
      },
    }, { highWaterMark: 0 });
  };
  return { model: g.bytes(), size: count * bytes, body, x, wanted };
}

// Loads it from a download, runs it, and gives the largest that WebAssembly's memory was.
async function runMeans({ OneModel, gpu }, { model, size, body, x, wanted }, limit = 1e-5) {
  const seen = [];
  const response = new Response(body(), { headers: { "content-length": String(size) } });
  const one = await OneModel.load(model, {
    device: "gpu", requireGpu: true, gpu, externalData: { "weights.bin": response }, progress: (p) => seen.push(p) });
  const y = await only(one, x);
  const { weightBytes, memoryBytes } = one.info();
  await one.dispose();
  check(scaledError(y.data, wanted) <= limit, `the scaled error is ${scaledError(y.data, wanted)}`);
  check(weightBytes >= size, `the device has ${weightBytes} bytes of weights`);
  check(seen.length > 10 && seen.every((p, i) => i === 0 || p.loadedBytes > seen[i - 1].loadedBytes), "the progress does not grow");
  check(seen.at(-1).loadedBytes === model.length + size && seen.at(-1).totalBytes === model.length + size, "the progress does not end");
  return memoryBytes;
}

// A blob that cannot be read, like a file that is gone.
class LostBlob extends Blob {
  slice() {
    return { arrayBuffer: () => Promise.reject(new Error("the file is gone")) };
  }
}

// y = Relu(x w) of 64 columns.
function product() {
  const g = new Graph(), x = g.input("x", [1, 64]);
  g.node("Relu", [g.node("MatMul", [x, g.weight(64, 64, 64)])], {}, ["y"]);
  g.output("y", [1, 64]);
  return g.bytes();
}

export const cases = {
  "the angle classifier matches the CPU": (world) => matchesTheCpu(world, world.model(classifier), picture([1, 3, 48, 192])),
  "the recogniser matches the CPU": (world) => matchesTheCpu(world, world.model(recogniser), picture([1, 3, 48, 160])),
  "the detector matches the CPU": (world) => matchesTheCpu(world, world.model(detector), picture([1, 3, 96, 128])),
  "an encoder matches the CPU": (world) => matchesTheCpu(world, smallEncoder(), words, { name: "ids" }),
  "a residual network matches the CPU": (world) => matchesTheCpu(world, smallResidual(), picture([1, 3, 48, 48])),

  // The least that float16 tells apart is 5e-4 of the largest; both sides round in places of their own.
  "float16 models match the CPU, with shader-f16 and without": async (world) => {
    for (const gpu of [world.gpu, changed(world.gpu, { without: ["shader-f16"] })]) {
      await matchesTheCpu(world, smallEncoder({ isHalf: true }), words, { name: "ids", limit: 4e-3, gpu });
      const x = halves(picture([1, 3, 48, 48]));
      await matchesTheCpu(world, smallResidual({ isHalf: true }), x, { limit: 4e-3, gpu });
    }
  },

  "nothing is made after the first run": async ({ OneModel, gpu }) => {
    const one = await OneModel.load(product(), { device: "gpu", gpu });
    const x = picture([1, 64]);
    await one.run({ x });
    await one.run({ x });
    const before = one.info();
    for (let i = 0; i < 1000; ++i) await one.run({ x });
    const after = one.info();
    for (const counter of ["allocations", "kernels", "hostAllocations", "arenaBytes", "hostBytes"]) {
      check(before[counter] === after[counter], `${counter} grew from ${before[counter]} to ${after[counter]}`);
    }
    check(after.runs === before.runs + 1000, "the runs are not counted");
    check(after.device, "there is no device");
    await one.dispose();
  },

  "threads where memory may be shared": async ({ OneModel, model }) => {
    const one = await OneModel.load(model(recogniser), { device: "cpu", mode: "exact" });
    const wanted = globalThis.crossOriginIsolated ? navigator.hardwareConcurrency : 1;
    check(one.info().threads === wanted, `there are ${one.info().threads} threads, should be ${wanted}`);
    const x = picture([1, 3, 48, 160]), first = await only(one, x);
    for (let i = 0; i < 3; ++i) check(hasSameBits((await only(one, x)).data, first.data), "two runs differ");
    await one.dispose();
  },

  "shapes may change": async ({ OneModel, gpu, model }) => {
    const one = await OneModel.load(model(classifier), { device: "gpu", gpu });
    const cpu = await OneModel.load(model(classifier), { device: "cpu", mode: "exact" });
    for (const dims of [[1, 3, 48, 192], [2, 3, 48, 100], [1, 3, 48, 192]]) {
      const x = picture(dims);
      const [y, wanted] = [await only(one, x), await only(cpu, x)];
      check(scaledError(y.data, wanted.data) <= 1e-5, `${dims}: wrong values`);
      check(y.dims[0] === dims[0], `${dims}: the batch is ${y.dims[0]}`);
    }
    await Promise.all([one.dispose(), cpu.dispose()]);
  },

  "runs asked for at once take turns": async ({ OneModel, gpu, model }) => {
    const one = await OneModel.load(model(classifier), { device: "gpu", gpu });
    const inputs = [[1, 3, 48, 192], [1, 3, 48, 100], [1, 3, 48, 192]].map(picture);
    const alone = [];
    for (const x of inputs) alone.push(await only(one, x));
    const together = await Promise.all(inputs.map((x) => only(one, x)));
    together.forEach((y, i) => check(hasSameBits(y.data, alone[i].data), `run ${i} has other bits`));
    await one.dispose();
  },

  "sessions stand side by side": async ({ OneModel, gpu, model }) => {
    const load = () => OneModel.load(model(classifier), { device: "gpu", gpu });
    const [a, b] = await Promise.all([load(), load()]);
    const x = picture([1, 3, 48, 192]);
    const [ya, yb] = await Promise.all([only(a, x), only(b, x)]);
    check(hasSameBits(ya.data, yb.data), "they differ");
    await a.dispose();
    check(hasSameBits((await only(b, x)).data, ya.data), "one was lost with the other");
    await b.dispose();
  },

  "exact mode has the CPU's bits where the device earned it": async ({ OneModel, gpu, model }) => {
    const x = picture([1, 3, 48, 192]);
    const cpu = await OneModel.load(model(classifier), { device: "cpu", mode: "exact" });
    const one = await OneModel.load(model(classifier), { device: "gpu", mode: "exact", gpu });
    const [y, wanted, again] = [await only(one, x), await only(cpu, x), await only(one, x)];
    check(hasSameBits(y.data, again.data), "two runs differ");
    check(hasSameBits(y.data, wanted.data), `${scaledError(y.data, wanted.data)} from the CPU's`);
    await Promise.all([one.dispose(), cpu.dispose()]);
  },

  "a page without a device falls back and says so": async ({ OneModel, model }) => {
    const none = { requestAdapter: async () => null };
    const one = await OneModel.load(model(classifier), { gpu: none });
    check(one.info().device === null, "it has a device");
    check(one.info().fallbackReason.includes("no adapter"), one.info().fallbackReason);
    check((await only(one, picture([1, 3, 48, 192]))).dims.join() === "1,2", "it does not run");
    await one.dispose();
    await rejects(OneModel.load(model(classifier), { device: "gpu", gpu: none }), "OM_E_UNSUPPORTED", "no adapter");
    await rejects(OneModel.load(model(classifier), { requireGpu: true, gpu: none }), "OM_E_UNSUPPORTED", "no adapter");
  },

  "wrong inputs are named, and the model goes on": async ({ OneModel, gpu, model }) => {
    const one = await OneModel.load(model(classifier), { device: "gpu", gpu });
    const x = picture([1, 3, 48, 192]);
    await rejects(one.run({ q: x }), "OM_E_INVALID_INPUT", "'q'");
    await rejects(one.run({}), "OM_E_INVALID_INPUT", "'x'");
    await rejects(one.run({ x: { dims: [1, 3, 48, 192], data: new Int32Array(27648) } }), "OM_E_INVALID_INPUT", "int32");
    await rejects(one.run({ x: { dims: [1, 3, 48, 191], data: x.data } }), "OM_E_INVALID_INPUT", "bytes");
    await rejects(one.run({ x }, ["nothing"]), "OM_E_INVALID_INPUT", "nothing");
    check((await only(one, x)).dims.join() === "1,2", "it does not run any more");
    await one.dispose();
  },

  "broken models and addresses are told": async ({ OneModel, gpu, model }) => {
    await rejects(OneModel.load(new Uint8Array([1, 2, 3]), { gpu }), "OM_E_INVALID_MODEL", "");
    await rejects(OneModel.load("http://127.0.0.1:9/none.onnx", { gpu }), "OM_E_IO", "none.onnx");
    const one = await OneModel.load(model(classifier), { gpu });
    await one.dispose();
    await rejects(one.run({}), "OM_E_INVALID_ARGUMENT", "disposed");
  },

  "weights outside the model, with progress": async ({ OneModel, gpu }) => {
    const external = { location: "weights.bin", parts: [] };
    const bytes = smallEncoder({ external });
    const weights = new Blob(external.parts), address = URL.createObjectURL(weights);
    const whole = await OneModel.load(smallEncoder(), { device: "cpu" });
    const wanted = await only(whole, words, "ids");
    await whole.dispose();
    const all = [address, weights, new Uint8Array(await weights.arrayBuffer()), new Response(weights.stream())];
    for (const source of all) {
      const seen = [];
      const one = await OneModel.load(bytes, {
        device: "gpu", gpu, externalData: { "weights.bin": source }, progress: (progress) => seen.push(progress) });
      const y = await only(one, words, "ids");
      await one.dispose();
      check(scaledError(y.data, wanted.data) <= 1e-5, "other values");
      const { loadedBytes, totalBytes } = seen.at(-1);
      check(loadedBytes === bytes.length + weights.size, `the progress ends at ${loadedBytes}`);
      check(totalBytes === (source instanceof Response ? 0 : loadedBytes), `the total is ${totalBytes}`);
    }
    const onCpu = await OneModel.load(bytes, { device: "cpu", externalData: { "weights.bin": weights } });
    check(hasSameBits((await only(onCpu, words, "ids")).data, wanted.data), "the CPU has other bits");
    await onCpu.dispose();
    await rejects(OneModel.load(bytes, { gpu }), "OM_E_IO", "is not there");
    await rejects(OneModel.load(bytes, { gpu, externalData: { "weights.bin": new Uint8Array(8) } }), "OM_E_INVALID_MODEL", "ends at");
    const broken = new Response(new ReadableStream({ start: (stream) => stream.error(new Error("gone")) }));
    await rejects(OneModel.load(bytes, { gpu, externalData: { "weights.bin": broken } }), "OM_E_IO", "gone");
    const short = new Response(weights.slice(1).stream(), { headers: { "content-length": String(weights.size) } });
    await rejects(OneModel.load(bytes, { gpu, externalData: { "weights.bin": short } }), "OM_E_IO", "ended after");
    await rejects(OneModel.load(bytes, { gpu, externalData: { "weights.bin": new LostBlob([weights]) } }), "OM_E_IO", "the file is gone");
    await rejects(OneModel.load(new Response("", { status: 404 })), "OM_E_IO", "404");
  },

  // 300 MB of weights; and a download that breaks off, after which the page goes on.
  "weights go to the device without a copy in memory": async (world) => {
    const OneModel = await world.anew();
    const one = means(2048, 18);
    const broken = new Response(one.body(3), { headers: { "content-length": String(one.size) } });
    const options = { device: "gpu", gpu: world.gpu, externalData: { "weights.bin": broken } };
    await rejects(OneModel.load(one.model, options), "OM_E_IO", "the line is gone");
    const memory = await runMeans({ OneModel, gpu: world.gpu }, one);
    check(one.size > 300e6, `there are ${one.size} bytes of weights`);
    check(memory <= 48 << 20, `WebAssembly's memory came to ${memory} bytes`);
    return `${memory >> 20} MiB of WebAssembly memory for ${Math.round(one.size / 1e6)} MB of weights`;
  },

  // Shapes that are known at a run, and weights of a branch that a session makes into something.
  "weights are read when they are wanted": async ({ OneModel, gpu }) => {
    const external = { location: "weights.bin", parts: [] };
    const g = new Graph({ external }), x = g.input("x", ["rows", 160]);
    g.node("Relu", [g.node("MatMul", [x, g.weight(160, 160, 160)])], {}, ["y"]);
    const branch = (name) => {
      const body = new Graph({ external, seed: name.length, first: 100 * name.length });
      body.node("MatMul", ["y", body.node("Transpose", [body.weight(160, 160, 160)], {}, [`${name}_t`])], {}, [name]);
      body.output(name, ["rows", 160]);
      return body;
    };
    g.node("If", [g.input("c", [], 9)], { then_branch: branch("then"), else_branch: branch("other") }, ["z"]);
    g.output("y", ["rows", 160]);
    g.output("z", ["rows", 160]);
    const weights = new Blob(external.parts), bytes = g.bytes();
    const load = (options) => OneModel.load(bytes, { ...options, externalData: { "weights.bin": weights } });
    const [cpu, one] = await Promise.all([load({ device: "cpu", mode: "exact" }), load({ device: "gpu", gpu })]);
    const { nodes } = await one.diagnose({ x: { dtype: "float32", dims: [2, 160] }, c: { dtype: "bool", dims: [] } });
    check(nodes.some(({ operator, place }) => operator === "MatMul" && place === "device"), "the product is not on the device");
    for (const [rows, c] of [[1, 1], [5, 0], [3, 1]]) {
      const inputs = { x: picture([rows, 160]), c: { dtype: "bool", dims: [], data: new Uint8Array([c]) } };
      const [a, b] = [await one.run(inputs), await cpu.run(inputs)];
      for (const name of ["y", "z"]) check(scaledError(a[name].data, b[name].data) <= 1e-5, `${name} of ${rows} rows is wrong`);
    }
    await Promise.all([one.dispose(), cpu.dispose()]);
  },

  "the device's time by step": async ({ OneModel, gpu, model }) => {
    const one = await OneModel.load(model(classifier), { device: "gpu", gpu, profile: true });
    const x = picture([1, 3, 48, 192]);
    const y = await only(one, x);
    await one.run({ x });
    const steps = await one.stepTimes();
    const hasClock = (await gpu.requestAdapter()).features.has("timestamp-query");
    check(steps.length === 0 || hasClock, "there are times without a clock");
    if (hasClock) {
      check(steps.length > 10, `${steps.length} steps`);
      check(steps.every(({ name, operator, ms, dispatches }) => name && operator && ms >= 0 && dispatches > 0), "a step lacks something");
      check(steps.reduce((sum, { ms }) => sum + ms, 0) > 0, "no time passed");
    }
    check(hasSameBits((await only(one, x)).data, y.data), "a profile changes the bits");
    await one.dispose();
  },

  "an adapter of small limits": async ({ OneModel, gpu }) => {
    const limits = { maxStorageBufferBindingSize: 8192 }; // the weights are twice that: read in parts
    const one = await OneModel.load(product(), { device: "gpu", requireGpu: true, gpu: changed(gpu, { limits }) });
    check((await only(one, picture([1, 64]))).dims.join() === "1,64", "it does not run");
    await one.dispose();
    const small = changed(gpu, { limits: { maxStorageBufferBindingSize: 128 } });
    await rejects(OneModel.load(product(), { requireGpu: true, gpu: small }).then((model) => model.run({ x: picture([1, 64]) })),
      "OM_E_UNSUPPORTED", "MatMul");
    const onCpu = await OneModel.load(product(), { gpu: small });
    check((await only(onCpu, picture([1, 64]))).dims.join() === "1,64", "it does not run on the CPU");
    await onCpu.dispose();
  },

  "what memory does not hold is told, and the page goes on": async ({ OneModel, gpu }) => {
    const tooLong = new Response(new Blob([product()]).stream(), { headers: { "content-length": String(2 ** 32 - 65536) } });
    await rejects(OneModel.load(tooLong, { gpu }), "OM_E_OUT_OF_MEMORY", "room");
    const one = await OneModel.load(product(), { gpu });
    check((await only(one, picture([1, 64]))).dims.join() === "1,64", "it does not run");
    await one.dispose();
  },

  "a lost device is told, and a new session works": async ({ OneModel, gpu, model }) => {
    let lost;
    const watched = changed(gpu, { made: (device) => { lost = device; } });
    const x = picture([1, 3, 48, 192]);
    const one = await OneModel.load(model(classifier), { device: "gpu", gpu: watched });
    const before = await only(one, x);
    lost.destroy();
    await lost.lost;
    await rejects(one.run({ x }), "OM_E_DEVICE_LOST", "lost");
    await one.dispose();
    const again = await OneModel.load(model(classifier), { device: "gpu", gpu });
    check(hasSameBits((await only(again, x)).data, before.data), "the new session has other bits");
    await again.dispose();
  },
};

// What takes gigabytes: for Node alone.
export const largeCases = {
  "weights above 2 GB": async (world) => {
    const one = means(5000, 22); // 100 MB each, which a binding of 128 MiB holds
    check(one.size > 2 ** 31, `there are ${one.size} bytes of weights`);
    // 22 sums of 5000 equal terms, which float32 rounds the same way, are 1.4e-5 from the doubles here; other orders of
    // the sums may double that.
    const memory = await runMeans({ OneModel: await world.anew(), gpu: world.gpu }, one, 3e-5);
    check(memory <= 48 << 20, `WebAssembly's memory came to ${memory} bytes`);
    return `${memory >> 20} MiB of WebAssembly memory for ${Math.round(one.size / 1e6)} MB of weights`;
  },
};

// Runs them all; report gets a name, what went wrong or null, the seconds it took, and what a case has to tell.
export async function runAll(world, report, list = cases) {
  for (const [name, run] of Object.entries(list)) {
    const begin = performance.now();
    let problem = null, note;
    try {
      note = await run(world);
    } catch (error) {
      problem = error.message;
    }
    await report(name, problem, (performance.now() - begin) / 1e3, note);
  }
}
