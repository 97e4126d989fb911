// What must hold of the package, in a browser and in Node with Dawn: this file runs in both.
//
// `world` is {OneModel, gpu, model}: the package's class, the page's WebGPU (Dawn's in Node), and where a model's
// file is: an address or its bytes.

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

// The same numbers each time, in -1..1.
function picture(dims) {
  const data = new Float32Array(dims.reduce((a, b) => a * b, 1));
  let state = 1;
  for (let i = 0; i < data.length; ++i) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    data[i] = state / 0x40000000 - 1;
  }
  return { dims, data };
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

async function only(model, x) {
  const y = await model.run({ x });
  return Object.values(y)[0];
}

// On the device as one region, near the CPU's exact mode, twice with the same bits.
async function matchesTheCpu(world, file, dims) {
  const x = picture(dims);
  const cpu = await world.OneModel.load(world.model(file), { device: "cpu", mode: "exact" });
  const wanted = await only(cpu, x);
  await cpu.dispose();
  const model = await world.OneModel.load(world.model(file), { device: "gpu", requireGpu: true, gpu: world.gpu });
  const [first, second] = [await only(model, x), await only(model, x)];
  const { nodes, regions } = await model.diagnose({ x });
  await model.dispose();
  const error = scaledError(first.data, wanted.data);
  check(error <= 1e-5, `the scaled error is ${error}`);
  check(first.dims.join() === wanted.dims.join(), `the shape is ${first.dims}, should be ${wanted.dims}`);
  check(hasSameBits(first.data, second.data), "two runs differ");
  check(regions === 1, `there are ${regions} regions`);
  check(nodes.every(({ place }) => place !== "cpu"), "a node is on the CPU");
}

export const cases = {
  "the angle classifier matches the CPU": (world) => matchesTheCpu(world, classifier, [1, 3, 48, 192]),
  "the recogniser matches the CPU": (world) => matchesTheCpu(world, recogniser, [1, 3, 48, 160]),
  "the detector matches the CPU": (world) => matchesTheCpu(world, detector, [1, 3, 96, 128]),

  "nothing is made after the first run": async ({ OneModel, gpu, model }) => {
    const one = await OneModel.load(model(classifier), { device: "gpu", gpu });
    const x = picture([1, 3, 48, 192]);
    await one.run({ x });
    await one.run({ x });
    const before = one.info();
    for (let i = 0; i < 20; ++i) await one.run({ x });
    const after = one.info();
    for (const counter of ["allocations", "kernels", "hostAllocations", "arenaBytes", "hostBytes"]) {
      check(before[counter] === after[counter], `${counter} grew from ${before[counter]} to ${after[counter]}`);
    }
    check(after.runs === before.runs + 20, "the runs are not counted");
    check(after.device, "there is no device");
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

  "a lost device is told, and a new session works": async ({ OneModel, gpu, model }) => {
    let lost;
    const watched = {
      requestAdapter: async (options) => {
        const adapter = await gpu.requestAdapter(options);
        const requestDevice = adapter.requestDevice.bind(adapter);
        return {
          limits: adapter.limits, features: adapter.features, info: adapter.info,
          requestDevice: async (wanted) => (lost = await requestDevice(wanted)),
        };
      },
    };
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

// Runs them all; report gets a name, what went wrong or null, and the seconds it took.
export async function runAll(world, report) {
  for (const [name, run] of Object.entries(cases)) {
    const begin = performance.now();
    let problem = null;
    try {
      await run(world);
    } catch (error) {
      problem = error.message;
    }
    await report(name, problem, (performance.now() - begin) / 1e3);
  }
}
